"""Published measurements beside the repository, where they are there."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from paceline.dataset import Dataset, load_dataset

FOLDER = Path(__file__).parents[3] / "shared" / "data"
FILES = sorted(FOLDER.glob("*.csv"))

pytestmark = pytest.mark.skipif(not FILES, reason="no measurements beside the repository")


def names(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", FILES, ids=names)
def test_roles_that_are_guessed_agree_with_those_written_down(path: Path) -> None:
    roles = tomllib.loads(path.with_suffix(".toml").read_text(encoding="utf-8"))
    dataset = load_dataset(path, time=roles["time"], group=roles.get("group"))
    assert set(dataset.extrinsic) == set(roles["extrinsic"])
    assert set(dataset.intrinsic) == set(roles["intrinsic"])
    # A label of several numbers cannot be told from a quantity; the others must be found.
    assert set(roles["categorical"]) - set(dataset.categorical) <= {"torch"}


@pytest.mark.parametrize("path", FILES, ids=names)
def test_every_guess_is_a_sentence(path: Path) -> None:
    dataset = load_dataset(path)
    assert len(dataset.notes) == len(set(dataset.notes))
    assert all(note.endswith(".") and "\n" not in note for note in dataset.notes)
    for name in dataset.extrinsic:
        assert any(f"`{name}` is taken as extrinsic" in note for note in dataset.notes)


@pytest.mark.parametrize("path", FILES, ids=names)
def test_roles_that_are_named_leave_nothing_to_guess(path: Path) -> None:
    roles = tomllib.loads(path.with_suffix(".toml").read_text(encoding="utf-8"))
    wanted = {key: roles[key] for key in ("time", "intrinsic", "extrinsic", "categorical")}
    dataset = load_dataset(path, **wanted, group=roles.get("group"))
    assert isinstance(dataset, Dataset)
    assert set(roles["categorical"]) <= set(dataset.categorical)
    assert set(dataset.X.columns) == {*roles["intrinsic"], *roles["extrinsic"]}
    fit, rest = dataset.split(share=0.7, group=roles.get("group"))
    assert len(fit) + len(rest) == len(dataset)
