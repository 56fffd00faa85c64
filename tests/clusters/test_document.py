"""The table of the document is that of the catalogue."""

from pathlib import Path

import pytest

from paceline.clusters import list_clusters, load_cluster

DOCUMENT = Path(__file__).parents[2] / "docs" / "clusters.md"


@pytest.mark.parametrize("name", list_clusters())
def test_the_document_shows_every_machine_as_its_file_has_it(name: str) -> None:
    cluster = load_cluster(name)
    (row,) = [
        line for line in DOCUMENT.read_text().splitlines() if line.startswith(f"| `{name}` |")
    ]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    device, inside = cluster.device, cluster.levels[0]
    assert cells[1:5] == [
        device.name,
        f"{device.peak_flops['float32'] / 1e12:g}",
        f"{device.memory_bytes / 1e9:g}",
        f"{device.memory_bandwidth / 1e9:g}",
    ]
    assert cells[5] == (
        f"{inside.size or 'any'} by {inside.link.name}, {inside.link.bandwidth / 1e9:g} GB/s, "
        f"{inside.link.latency_s * 1e6:g} us"
    )
    assert cells[-1] == ("no" if cluster.unverified else "yes")


def test_the_example_file_is_a_cluster(tmp_path: Path) -> None:
    text = DOCUMENT.read_text().split("```toml\n")[1].split("```")[0]
    path = tmp_path / "mine.toml"
    path.write_text(text)
    assert load_cluster(path).levels[1].link.bandwidth == 24e9
