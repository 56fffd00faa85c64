"""From the time of a step to that of an epoch."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.measurement.small_studies import simulated, small_study

from paceline.cli import main
from paceline.dataset import Dataset, load_dataset, save_store
from paceline.errors import InvalidInputError
from paceline.measurement import measure


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("epochs") / "runs.db"
    measure(small_study(n_samples=1000), path, executors=simulated())
    return path


def run(capsys: Any, *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_an_epoch_is_its_steps_the_last_one_whole(store: Path) -> None:
    step, epoch = load_dataset(store), load_dataset(store, time_per="epoch")
    n_steps = -(-1000 // (step.X["device_batch"] * step.X["n_devices"]))
    assert epoch.y.to_numpy() == pytest.approx((step.y * n_steps).to_numpy())
    assert epoch.times_s and step.times_s
    assert epoch.times_s[3] == pytest.approx([t * n_steps[3] for t in step.times_s[3]])
    assert str(epoch.basis) == "time per epoch at fixed device batch"
    assert epoch.basis.ideal_device_power == -1.0
    assert any("ceil(`n_samples` / global batch) steps" in note for note in epoch.notes)


def test_a_sample_is_its_part_of_a_step(store: Path) -> None:
    step, sample = load_dataset(store), load_dataset(store, time_per="sample")
    batch = step.X["device_batch"] * step.X["n_devices"]
    assert sample.y.to_numpy() == pytest.approx((step.y / batch).to_numpy())


def test_a_step_stays_a_step(store: Path) -> None:
    assert load_dataset(store, time_per="step").y.equals(load_dataset(store).y)


def test_the_verbs_convert_and_what_they_write_is_not_converted_again(
    store: Path, tmp_path: Path, capsys: Any
) -> None:
    epochs = tmp_path / "epochs.db"
    assert run(capsys, "import", store, "-o", epochs, "--time-per", "epoch")[0] == 0
    expected = load_dataset(store, time_per="epoch").y
    assert load_dataset(epochs).y.to_numpy() == pytest.approx(expected.to_numpy())
    again = load_dataset(epochs, time_per="epoch")
    assert again.y.to_numpy() == pytest.approx(expected.to_numpy())
    code, out, _ = run(
        *(capsys, "fit", store, "--time-per", "epoch", "--seeds", "1"),
        *("--output-format", "json"),
    )
    assert code == 0 and json.loads(out)["basis"]["time_per"] == "epoch"


def test_it_is_refused_in_one_line_where_the_samples_are_unknown(
    tmp_path: Path, capsys: Any
) -> None:
    rows = [
        {"device_batch": b, "n_devices": n, "time_s": 0.1 * b} for b in (8, 16) for n in (1, 2)
    ]
    path = tmp_path / "steps.db"
    save_store(Dataset.from_frame(pd.DataFrame(rows), time_per="step"), path)
    for words in (("fit", path), ("import", path, "-o", tmp_path / "new.db")):
        code, out, err = run(capsys, *words, "--time-per", "epoch")
        assert code == 2 and not out
        assert "The samples of an epoch must be known in every row, but `n_samples`" in err
        assert len(err.splitlines()) == 1
    sample = load_dataset(path, time_per="sample")
    assert sample.y.tolist() == pytest.approx([0.1, 0.05, 0.1, 0.05])


def test_an_epoch_is_not_turned_into_steps(tmp_path: Path) -> None:
    frame = pd.DataFrame({"width": [1.0, 2.0, 3.0], "time_s": [1.0, 2.0, 3.0]})
    path = tmp_path / "epochs.db"
    save_store(Dataset.from_frame(frame, time_per="epoch"), path)
    with pytest.raises(InvalidInputError, match="Only the time of a step can be converted"):
        load_dataset(path, time_per="step")
    no_batch = tmp_path / "steps.db"
    save_store(Dataset.from_frame(frame, time_per="step"), no_batch)
    with pytest.raises(InvalidInputError, match="global batch, for a time per sample, must be"):
        load_dataset(no_batch, time_per="sample")
