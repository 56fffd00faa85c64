"""Cluster files: what they hold, what is wrong with them, and the catalogue."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from paceline.cli._main import command
from paceline.clusters import (
    Cluster,
    cluster_from_dict,
    cluster_to_dict,
    list_clusters,
    load_cluster,
    save_cluster,
)
from paceline.errors import InvalidInputError, SchemaError, UnknownNameError

GOOD = """
schema = "paceline/cluster/1"
name = "mine"
[device]
name = "chip"
memory_bytes = 1e9
memory_bandwidth = 1e10
[device.peak_flops]
float32 = 1e12
[[levels]]
name = "node"
size = 4
[levels.link]
name = "wire"
latency_s = 1e-5
bandwidth = 1e9
"""


def load(tmp_path: Path, text: str) -> Cluster:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return load_cluster(path)


def test_a_file_is_read_with_defaults(tmp_path: Path) -> None:
    cluster = load(tmp_path, GOOD)
    assert cluster.devices_per_node == 4 and not cluster.unverified
    assert cluster.device.efficiency == {"default": 0.5}
    assert cluster.levels[0].link.bandwidth == 1e9


@pytest.mark.parametrize("name", list_clusters())
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    cluster = load_cluster(name)
    save_cluster(cluster, tmp_path / "copy.toml")
    assert load_cluster(tmp_path / "copy.toml") == cluster
    assert cluster_from_dict(json.loads(json.dumps(cluster_to_dict(cluster)))) == cluster


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("memory_bytes = 1e9", "", "`device.memory_bytes` must be given"),
        ("memory_bytes = 1e9", "memory_bytes = -1", "`device.memory_bytes` must be positive"),
        ("bandwidth = 1e9", "", "`levels.0.link.bandwidth` must be given"),
        ("bandwidth = 1e9", "bandwidth = 0", "`levels.0.link.bandwidth` must be positive"),
        ("bandwidth = 1e9", "bandwidth = nan", "`levels.0.link.bandwidth` must be positive"),
        ("bandwidth = 1e9", 'bandwidth = "1e9"', "must be a number, but got '1e9'"),
        ("latency_s = 1e-5", "latency_s = -1e-5", "`levels.0.link.latency_s` must not be neg"),
        ("size = 4", "size = 4.5", "`levels.0.size` must be a whole number"),
        ("size = 4", "size = 4\noversubscription = 0.5", "oversubscription` must be at least 1"),
        ("[device]", "slowdowns = [0.5]\n[device]", "must be a list of numbers of at least 1"),
        ("[device]", "exchange_slowdowns = [0]\n[device]", "must be a list of positive numbers"),
        ("[device]", "exchange_floors_s = [nan]\n[device]", "must be a list of numbers of sec"),
        ("float32 = 1e12", "", "`device.peak_flops` must not be empty"),
        ('name = "chip"', "name = 3", "`device.name` must be a text"),
        ("paceline/cluster/1", "paceline/cluster/2", "made by a newer Paceline"),
        ("paceline/cluster/1", "paceline/space/1", '`schema` must be "paceline/cluster/1"'),
        ("[device]", "[device", "must be valid TOML"),
        ("float32 = 1e12", "float32 = 1e12\n[device.efficiency]\nconv = 1.5", "at most 1"),
    ],
)
def test_a_wrong_figure_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(SchemaError) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert message in str(caught.value) and "mine.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "nearest"),
    [
        ("memory_bytes", "memory_byte", "memory_bytes"),
        ("bandwidth = 1e9", "bandwith = 1e9", "bandwidth"),
        ("[[levels]]", "[[level]]", "levels"),
        ("float32", "float23", "float32"),
    ],
)
def test_an_unknown_field_answers_with_the_nearest(
    tmp_path: Path, old: str, new: str, nearest: str
) -> None:
    broken = (
        GOOD.replace(old, new, 1).replace("[levels.link]", f"[{new.strip('[]')}.link]")
        if old == "[[levels]]"
        else GOOD.replace(old, new, 1)
    )
    with pytest.raises(UnknownNameError, match=f"Did you mean '{nearest}'") as caught:
        load(tmp_path, broken)
    assert "mine.toml" in str(caught.value)


def test_only_the_outermost_level_may_be_without_end(tmp_path: Path) -> None:
    endless = GOOD.replace("size = 4", "size = 0")
    assert load(tmp_path, endless).levels[0].size == 0
    two = endless + GOOD[GOOD.index("[[levels]]") :]
    with pytest.raises(SchemaError, match=r"`levels.0.size` may be 0 only in the outermost"):
        load(tmp_path, two)


def test_levels_limit_the_number_of_devices(tmp_path: Path) -> None:
    second = GOOD[GOOD.index("[[levels]]") :].replace("size = 4", "size = 3")
    assert load(tmp_path, GOOD).capacity == 4
    assert load(tmp_path, GOOD + second).capacity == 12
    assert load(tmp_path, GOOD + second.replace("size = 3", "size = 0")).capacity == 0
    few = GOOD.replace("[device]", "n_devices = 3\n[device]", 1)
    assert load(tmp_path, few).capacity == 3
    many = GOOD.replace("[device]", "n_devices = 13\n[device]", 1)
    rule = r"mine.toml: `n_devices` must be at most 4 \* 3 = 12, .* but got 13"
    with pytest.raises(SchemaError, match=rule):
        load(tmp_path, many + second)


def test_an_unknown_cluster_answers_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'dgx-a100'"):
        load_cluster("dgx-a10")
    with pytest.raises(InvalidInputError, match="must be readable"):
        load_cluster(tmp_path / "none.toml")
    with pytest.raises(InvalidInputError, match="must be writable"):
        save_cluster(load_cluster("abci"), tmp_path / "none" / "abci.toml")


def figures(cluster: Cluster) -> list[str]:
    """Return the dotted names of all figures that a file states."""
    device = [f"device.peak_flops.{p}" for p in cluster.device.peak_flops]
    device += ["device.memory_bytes", "device.memory_bandwidth"]
    levels = []
    for level in cluster.levels:
        prefix = f"levels.{level.name}"
        levels += [f"{prefix}.size", f"{prefix}.link.latency_s", f"{prefix}.link.bandwidth"]
        if level.link.contention != 1:
            levels.append(f"{prefix}.link.contention")
        if level.oversubscription != 1:
            levels.append(f"{prefix}.oversubscription")
    price = [] if cluster.price_per_device_hour is None else ["price_per_device_hour"]
    return device + levels + price


def is_sourced(cluster: Cluster, figure: str) -> bool:
    parts = figure.split(".")
    return any(".".join(parts[:i]) in cluster.sources for i in range(1, len(parts) + 1))


@pytest.mark.parametrize("name", list_clusters())
def test_every_figure_has_a_source_or_the_file_says_otherwise(name: str) -> None:
    cluster = load_cluster(name)
    assert cluster.name == name == name.lower()
    missing = [figure for figure in figures(cluster) if not is_sourced(cluster, figure)]
    assert bool(missing) == cluster.unverified, missing


def test_the_catalogue_is_large_enough() -> None:
    verified = [name for name in list_clusters() if not load_cluster(name).unverified]
    assert len(list_clusters()) >= 10 and len(verified) >= 6
    assert all(
        "http" in s or "arXiv" in s for n in verified for s in load_cluster(n).sources.values()
    )


def test_the_command_line_lists_every_machine() -> None:
    done = CliRunner().invoke(command, ["list", "clusters", "--output-format", "json"])
    assert done.exit_code == 0 and list(json.loads(done.output)) == list_clusters()
