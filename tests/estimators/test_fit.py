import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError, SchemaError, UnknownNameError
from paceline.estimators import (
    FitResult,
    GenericRegressor,
    fit,
    fit_to_dict,
    load_fit,
    save_fit,
)
from paceline.estimators._saved import fit_from_dict
from paceline.validation import generate_study


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return generate_study("tensorflow", n_rows=300, noise=0.05, random_state=0).dataset


@pytest.fixture(scope="module")
def result(dataset: Dataset) -> FitResult:
    return fit(dataset, n_seeds=2, n_bootstrap=5)


@pytest.fixture(scope="module")
def saved(result: FitResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model.json"
    save_fit(result, path)
    return path


def test_a_saved_fit_predicts_the_same(result: FitResult, saved: Path, dataset: Dataset) -> None:
    pd.testing.assert_frame_equal(
        load_fit(saved).predict(dataset.X), result.predict(dataset.X), rtol=0, atol=0
    )
    assert fit_to_dict(load_fit(saved)) == fit_to_dict(result)


def test_same_data_and_seed_give_the_same_bytes(
    dataset: Dataset, saved: Path, tmp_path: Path
) -> None:
    save_fit(fit(dataset, n_seeds=2, n_bootstrap=5), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == saved.read_bytes()


def test_ninety_percent_intervals_cover_unseen_rows(result: FitResult) -> None:
    unseen = generate_study("tensorflow", n_rows=2000, noise=0.05, random_state=9).dataset
    predicted = result.predict(unseen.X)
    inside = (predicted["lower_s"] <= unseen.y) & (unseen.y <= predicted["upper_s"])
    assert 0.85 <= inside.mean() <= 0.96
    assert predicted["extrapolates"].sum() == 0


def test_beyond_the_measured_range_the_interval_widens(
    result: FitResult, dataset: Dataset
) -> None:
    row = dataset.X.head(1)
    near = result.predict(row).iloc[0]
    far = result.predict(row.assign(n_devices=48.0)).iloc[0]
    assert near["extrapolates"] == 0 and far["extrapolates"] == 1
    assert far["upper_s"] / far["lower_s"] > near["upper_s"] / near["lower_s"]


def test_an_unseen_level_spans_levels_whose_order_depends_on_the_row() -> None:
    rng = np.random.default_rng(0)
    device = rng.choice(["old", "new", "odd"], 240)
    batch, n = rng.choice([8.0, 32, 128], 240), rng.choice([1.0, 2, 4, 8], 240)
    slope = pd.Series(device).map({"old": 4.0, "new": 1.0, "odd": 0.3}).to_numpy()
    fixed = pd.Series(device).map({"old": 0.2, "new": 0.5, "odd": 3.0}).to_numpy()
    times = (0.01 * slope * batch / n + fixed) * np.exp(0.03 * rng.normal(size=240))
    frame = pd.DataFrame({"device": device, "batch": batch, "n_devices": n, "time_s": times})
    fitted = fit(Dataset.from_frame(frame), n_seeds=1)
    rows = pd.DataFrame({"batch": [8.0, 128.0], "n_devices": [8.0, 1.0]})
    unseen = fitted.predict(rows.assign(device="newest"))
    for level in ("old", "new", "odd"):
        known = fitted.predict(rows.assign(device=level))["predicted_s"]
        assert (unseen["lower_s"] <= known).all() and (known <= unseen["upper_s"]).all()


def scaled(jump: float) -> FitResult:
    """A step that is shared out, and with more than four devices `jump` seconds on top."""
    rng = np.random.default_rng(0)
    batch, n = rng.choice([8.0, 32, 128], 200), rng.choice([1.0, 2, 4, 8], 200)
    times = (0.02 * batch / n + 0.05 + jump * (n > 4)) * np.exp(0.02 * rng.normal(size=200))
    frame = pd.DataFrame({"batch": batch, "n_devices": n, "time_s": times})
    return fit(Dataset.from_frame(frame), n_seeds=1)


def test_intervals_grow_faster_outside_where_the_end_of_the_range_was_unforeseeable() -> None:
    smooth, jumping = scaled(0.0), scaled(0.3)
    assert smooth.widening < 6.0 < jumping.widening
    row = pd.DataFrame({"batch": [32.0], "n_devices": [32.0]})
    far = jumping.predict(row).iloc[0]
    assert far["upper_s"] / far["lower_s"] > 4.0
    again = fit_from_dict(fit_to_dict(jumping))
    assert again.predict(row).equals(jumping.predict(row))


def test_levels_are_known_in_other_letters(result: FitResult) -> None:
    row = pd.DataFrame([result.measured.typical()])
    level = str(row["optimizer"].iloc[0])
    shouted = result.predict(row.assign(optimizer=level.upper()))
    assert shouted.equals(result.predict(row))


@pytest.mark.parametrize("blank", [None, "", " "])
def test_a_blank_cell_is_the_level_that_it_was_when_fitted(blank: str | None) -> None:
    frame = pd.DataFrame({"x": np.tile([1.0, 2, 4, 8, 16, 32], 4)})
    frame["comm"] = np.repeat(["ring", None], 12)
    frame["time_s"] = 0.1 * frame["x"] * frame["comm"].map({"ring": 3.0}).fillna(1.0)
    rows = pd.DataFrame({"x": [8.0, 8.0], "comm": ["ring", blank]})
    predicted = fit(Dataset.from_frame(frame)).predict(rows)
    assert predicted["predicted_s"].to_numpy() == pytest.approx([2.4, 0.8], rel=0.01)
    assert not predicted["extrapolates"].any()


def test_a_row_unlike_all_others_is_named() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"width": np.arange(1.0, 61.0), "time_s": rng.uniform(1, 2, 60)})
    assert not any("Check them" in note for note in fit(Dataset.from_frame(frame)).notes)
    frame.loc[16, "time_s"] = 1e9
    (note,) = [n for n in fit(Dataset.from_frame(frame)).notes if "Check them" in n]
    assert note.startswith("row 17 took")


def test_a_floor_of_few_repeats_is_not_stated() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"width": np.arange(1.0, 61.0), "time_s": rng.uniform(1, 2, 60)})
    few = pd.concat([frame, frame.head(4)])
    assert fit(Dataset.from_frame(few), n_seeds=1).noise_floor is None
    assert fit(Dataset.from_frame(pd.concat([few, frame.head(1)])), n_seeds=1).noise_floor == 0.0


def test_an_unseen_level_gets_an_interval_that_holds_all_known_levels(
    result: FitResult, dataset: Dataset
) -> None:
    row = dataset.X.head(1)
    unseen = result.predict(row.assign(optimizer="lion")).iloc[0]
    known = [result.predict(row.assign(optimizer=o)).iloc[0] for o in ("adam", "sgd")]
    assert unseen["extrapolates"] == 1
    assert unseen["lower_s"] <= min(k["lower_s"] for k in known)
    assert unseen["upper_s"] >= max(k["upper_s"] for k in known)


def test_missing_parameters_of_a_point_take_typical_values(result: FitResult) -> None:
    row, filled = result.measured.complete({"n_devices": 2})
    assert "n_devices" not in filled and filled["filters"] == 16.0
    assert row["n_devices"].iloc[0] == 2.0
    with pytest.raises(UnknownNameError, match="Did you mean 'n_devices'"):
        result.measured.complete({"n_device": 2})
    with pytest.raises(InvalidInputError, match=r"must be a finite number.*'many'"):
        result.measured.complete({"n_devices": "many"})


def test_fewer_rows_than_constants_are_refused_with_what_to_do(dataset: Dataset) -> None:
    with pytest.raises(InvalidInputError, match=r"got 20 rows for 22 constants.*--penalty l2"):
        fit(dataset.take(np.arange(20)), form="generic")


def test_a_penalty_allows_fewer_rows_than_constants(dataset: Dataset) -> None:
    settings = GenericRegressor(penalty="l2")
    few = fit(dataset.take(np.arange(20)), form="generic", estimator=settings, n_seeds=1)
    assert any("cannot be determined" in note for note in few.notes)


def test_one_row_is_refused(dataset: Dataset) -> None:
    with pytest.raises(InvalidInputError, match="at least 2 rows, but got 1"):
        fit(dataset.take([0]))


def test_under_nine_rows_there_is_no_interval_and_a_note() -> None:
    frame = pd.DataFrame({"width": [1.0, 2, 3, 4, 5, 6], "time_s": [1.0, 2, 3, 4, 5, 6]})
    small = fit(Dataset.from_frame(frame, intrinsic=["width"]), n_seeds=1)
    assert small.scores is None and any("No interval" in note for note in small.notes)
    assert small.predict(frame)["lower_s"].isna().all()


def test_an_unknown_form_is_answered_with_the_known_ones(dataset: Dataset) -> None:
    with pytest.raises(UnknownNameError, match="generic"):
        fit(dataset, form="genric")


@settings(max_examples=40, deadline=None)
@given(st.floats(0, 0.999))
def test_a_truncated_model_file_is_an_error_of_ours(saved: Path, share: float) -> None:
    text = saved.read_text()
    broken = saved.parent / "broken.json"
    broken.write_text(text[: int(share * len(text.rstrip()))])
    with pytest.raises(SchemaError, match=r"broken\.json"):
        load_fit(broken)


def edited(saved: Path, **changes: object) -> Path:
    data = json.loads(saved.read_text())
    for path, value in changes.items():
        *parents, last = path.split("__")
        target = data
        for parent in parents:
            target = target[parent]
        target[last] = value
    changed = saved.parent / "changed.json"
    changed.write_text(json.dumps(data))
    return changed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": "paceline/model/2"}, "newer Paceline"),
        ({"schema": "paceline/plan/1"}, "must have schema 'paceline/model/1'"),
        ({"schema": None}, "must have schema"),
        ({"form": "os.system"}, "`form` must be one of 'generic'"),
        ({"expression": "__import__('os').system('true')"}, "not a usable model"),
        ({"expression__constant_s": "12; import os"}, "not a usable model"),
        ({"expression__constant_s": float("nan")}, "NaN is not a number"),
        ({"expression__terms": []}, "must name the same parameters"),
        ({"measured__ranges": {}}, "must name the same parameters"),
        ({"residuals": [3.0, 1.0]}, "must be sorted"),
        ({"settings": {}}, "not a usable model"),
        ({"basis": {"time_per": "fortnight"}}, "must be one of step, epoch, sample"),
    ],
)
def test_a_hostile_model_file_is_an_error_and_nothing_is_run(
    saved: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        load_fit(edited(saved, **changes))


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02", b"[1, 2]", b"[" * 100_000, b'"x"'])
def test_a_file_of_another_kind_is_an_error_of_ours(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(SchemaError):
        load_fit(path)


def test_a_missing_file_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        load_fit(tmp_path / "nothing.json")


def test_a_folder_that_does_not_exist_is_an_error_of_ours(
    result: FitResult, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match="folder"):
        save_fit(result, tmp_path / "none" / "model.json")


def grouped_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    model = np.repeat(np.arange(12), 10)
    frame = pd.DataFrame({"layers": np.exp(rng.uniform(0, 3, 12))[model], "model": model})
    frame["device_batch"] = rng.choice([1.0, 2, 4, 8], len(frame))
    speed = np.exp(0.3 * rng.normal(size=12))[model]
    return frame.assign(time_s=0.01 * frame["layers"] * frame["device_batch"] * speed)


def test_the_group_that_rows_were_read_with_is_held_out() -> None:
    frame = grouped_frame()
    dataset = Dataset.from_frame(frame, group="model")
    own, given = fit(dataset, n_seeds=1), fit(dataset, n_seeds=1, group="model")
    assert own.covers == given.covers == "values of model not measured"
    assert own.scores == given.scores
    assert dataset.take([0, 1]).group == "model"


def test_few_groups_are_named_as_the_reason() -> None:
    frame = grouped_frame()
    dataset = Dataset.from_frame(frame[frame["model"] < 2], group="model")
    notes = " ".join(fit(dataset, n_seeds=1).notes)
    assert "2 groups are too few to compare forms" in notes
    assert "model has 2 values, too few" in notes
