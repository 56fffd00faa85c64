"""Tutorials that start training processes, one after another."""

from pathlib import Path

import pytest
from tests.test_tutorials import TUTORIALS, WITH_WORKERS, assert_runs

pytest.importorskip("torch", reason="it trains. Try: pip install 'paceline[torch]'")


@pytest.mark.parametrize("name", WITH_WORKERS)
def test_a_tutorial_trains_prints_figures_and_leaves_nothing_running(
    name: str, tmp_path: Path
) -> None:
    (tutorial,) = (path for path in TUTORIALS if path.stem == name)
    assert_runs(tutorial, tmp_path)
    assert list((tmp_path).glob("*.db"))  # what was measured is kept
    assert not _running_in(tmp_path)


def _running_in(folder: Path) -> list[str]:
    """Return the processes whose working folder is this one (none where /proc is missing)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if entry.readlink() == folder:
                found.append(entry.parent.name)
        except OSError:  # it has ended, or is not ours
            continue
    return found
