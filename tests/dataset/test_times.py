"""From a time or a throughput column to seconds."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError


@pytest.mark.parametrize(("unit", "seconds"), [("s", 1.0), ("ms", 1e-3), ("us", 1e-6)])
def test_times_are_kept_in_seconds(unit: str, seconds: float) -> None:
    frame = pd.DataFrame({"x": [1, 2, 3], "t": [10, 20, 40]})
    dataset = Dataset.from_frame(frame, time="t", time_unit=unit)
    assert list(dataset.y) == pytest.approx([10 * seconds, 20 * seconds, 40 * seconds])


@pytest.mark.parametrize(
    ("name", "seconds", "note"),
    [
        ("step time (ms)", 1e-3, "is taken in milliseconds, by its name."),
        ("latency_us", 1e-6, "is taken in microseconds, by its name."),
        ("epoch_minutes", 60.0, "is taken in minutes, by its name."),
        ("t", 1.0, "is taken in seconds: its name tells no unit; else give `--time-unit`."),
    ],
)
def test_the_name_of_a_time_tells_its_unit_with_a_note(
    name: str, seconds: float, note: str
) -> None:
    dataset = Dataset.from_frame(pd.DataFrame({"x": [1, 2, 3], name: [10, 20, 40]}), time=name)
    assert list(dataset.y) == pytest.approx([10 * seconds, 20 * seconds, 40 * seconds])
    assert f"`{name}` {note}" in dataset.notes


def test_a_unit_that_is_given_is_obeyed_without_a_note() -> None:
    frame = pd.DataFrame({"x": [1, 2, 3], "step_ms": [10, 20, 40]})
    dataset = Dataset.from_frame(frame, time="step_ms", time_unit="us")
    assert list(dataset.y) == pytest.approx([1e-5, 2e-5, 4e-5])
    assert not any("by its name." in note for note in dataset.notes)


def test_the_usual_time_needs_no_note_of_its_unit() -> None:
    dataset = Dataset.from_frame(pd.DataFrame({"x": [1, 2, 3], "time_s": [1, 2, 4]}))
    assert not any("time_s" in note for note in dataset.notes)


@pytest.mark.parametrize(
    ("columns", "batch", "formula"),
    [
        ({"global_batch": 64, "local_batch": 8, "n_gpus": 4}, 64, "`global_batch`"),
        ({"local_batch": 8, "n_gpus": 4}, 32, "`local_batch` × `n_gpus`"),
        (
            {"micro_batch": 8, "grad_accum": 2, "n_gpus": 4},
            64,
            "`micro_batch` × `grad_accum` × `n_gpus`",
        ),
        (
            {"micro_batch": 8, "n_gpus": 16, "tp": 4, "pp": 2, "ep": 2},
            16,
            "`micro_batch` × `n_gpus` / `tp` / `pp`",
        ),
        ({"device_batch": 8, "n_devices": 2, "batch": 99}, 16, "`device_batch` × `n_devices`"),
        ({"batch_size": 32, "n_gpus": 4}, 32, "`batch_size`"),
    ],
)
def test_a_throughput_gives_the_time_of_a_step(
    columns: dict[str, int], batch: int, formula: str
) -> None:
    rows = {name: [value] * 3 for name, value in columns.items()}
    frame = pd.DataFrame({"x": [1, 2, 3], **rows, "samples_per_s": [100.0, 200.0, 400.0]})
    dataset = Dataset.from_frame(frame, throughput="samples_per_s")
    assert list(dataset.y) == pytest.approx([batch / 100, batch / 200, batch / 400])
    assert f"The time of a step is {formula} / `samples_per_s`." in dataset.notes
    assert dataset.basis.time_per == "step"
    assert "samples_per_s" not in dataset.X.columns


def read_throughput(columns: dict[str, Any], **options: Any) -> Dataset:
    return Dataset.from_frame(pd.DataFrame(columns), throughput="speed", **options)


def test_a_throughput_without_any_batch_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="`speed` needs a batch column"):
        read_throughput({"x": [1, 2, 3], "device_batch": [1, 2, 3], "speed": [1.0, 2.0, 3.0]})


def test_a_throughput_is_not_the_time_of_an_epoch() -> None:
    with pytest.raises(InvalidInputError, match="`throughput` gives the time of a step"):
        read_throughput({"batch": [1, 2, 3], "speed": [1.0, 2.0, 3.0]}, time_per="epoch")


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_a_throughput_must_be_positive(bad: float) -> None:
    with pytest.raises(
        InvalidInputError, match=f"`speed` must be positive, but row 2 has {bad:g}"
    ):
        read_throughput({"batch": [1, 2, 3], "speed": [1.0, bad, 3.0]})


def test_a_throughput_is_no_parameter() -> None:
    with pytest.raises(InvalidInputError, match="time must not be a parameter, but got `speed`"):
        read_throughput({"batch": [1, 2, 3], "speed": [1.0, 2.0, 3.0]}, intrinsic=["speed"])


def test_a_time_beside_a_throughput_is_left_out_with_a_note() -> None:
    dataset = read_throughput({"batch": [1, 2, 3], "speed": [1.0, 2.0, 4.0], "time_s": [9, 9, 9]})
    assert list(dataset.y) == [1.0, 1.0, 0.75]
    assert any("`time_s` is another time" in note for note in dataset.notes)
