"""Mistakes that used to pass in silence, or to be said in a way that nobody can read."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.measurement.small_studies import DATA, simulated, small_study

from paceline.cli import main
from paceline.dataset import Dataset, save_store
from paceline.errors import InvalidInputError
from paceline.measurement import dry_run


def run(capsys: Any, *words: object) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0), capsys.readouterr().err


def table(folder: Path, **columns: list[Any]) -> Path:
    path = folder / f"{'-'.join(columns)}.csv"
    pd.DataFrame({**columns, "time_s": [0.1, 0.2, 0.4]}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("option", ["--intrinsic", "--extrinsic", "--categorical"])
@pytest.mark.parametrize("names", ["", " , "])
def test_an_empty_list_of_names_is_refused(
    tmp_path: Path, option: str, names: str, capsys: Any
) -> None:
    path = table(tmp_path, width=[1, 2, 4], n_devices=[1, 2, 3])
    code, err = run(capsys, "fit", path, option, names)
    assert code == 2 and len(err.splitlines()) == 1
    assert f"{option} must name at least one column, but got {names!r}" in err


def test_a_dry_run_on_a_foreign_file_names_that_file(tmp_path: Path, capsys: Any) -> None:
    foreign = tmp_path / "foreign.db"
    frame = pd.DataFrame({"width": [1.0, 2.0], "time_s": [1.0, 2.0]})
    save_store(Dataset.from_frame(frame), foreign)
    text, empty = tmp_path / "text.db", tmp_path / "empty.db"
    text.write_text("no database")
    empty.touch()
    for path in (foreign, text):
        with pytest.raises(InvalidInputError, match=path.name) as caught:
            dry_run(small_study(), path, executors=simulated())
        assert "probe" not in str(caught.value) and "\n" not in str(caught.value)
    assert dry_run(small_study(), empty, executors=simulated()).n_done == 0


def test_a_dry_run_on_the_file_of_another_study_names_that_file(tmp_path: Path) -> None:
    from paceline.measurement import measure

    path = tmp_path / "runs.db"
    measure(small_study(), path, executors=simulated())
    with pytest.raises(InvalidInputError, match="`random_state` was 3 and is 4") as caught:
        dry_run(small_study(random_state=4), path, executors=simulated())
    assert str(path) in str(caught.value) and DATA["random_state"] == 3


def test_rows_that_cannot_be_appended_are_told_apart_in_words(tmp_path: Path, capsys: Any) -> None:
    store = tmp_path / "runs.db"
    first = table(tmp_path, width=[1, 2, 4], n_devices=[1, 2, 3])
    assert run(capsys, "import", first, "-o", store)[0] == 0
    other = table(tmp_path, depth=[1, 2, 4], n_devices=[1, 2, 3])
    words = ("--intrinsic", "depth,n_devices", "--append")
    code, err = run(capsys, "import", other, "-o", store, *words)
    said = err.splitlines()[-1]
    assert code == 2 and "(" in said and "[(" not in said
    assert "`width` (intrinsic numeric) is missing" in said
    assert "`depth` (intrinsic numeric) is not in the store" in said
    assert "`n_devices` is intrinsic numeric, in the store extrinsic numeric" in said
