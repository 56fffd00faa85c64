"""Which columns become parameters, and what is said about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from paceline.dataset import BLANK, Dataset, level_name
from paceline.errors import InvalidInputError, UnknownNameError


def read(columns: dict[str, list[Any]], **options: Any) -> Dataset:
    n_rows = len(next(iter(columns.values())))
    times = [1.0 + 0.1 * i for i in range(n_rows)]
    return Dataset.from_frame(pd.DataFrame({**columns, "time_s": times}), **options)


def noted(dataset: Dataset, name: str, words: str) -> bool:
    return any(f"`{name}`" in note and words in note for note in dataset.notes)


VARIED = [1.0, 2.0, 3.0]


def test_numbers_are_floats_and_texts_are_plain_strings() -> None:
    dataset = read({"filters": [4, 8, 16], "optimizer": ["adam", "sgd", "adam"]})
    assert dataset.X["filters"].dtype == np.float64
    assert dataset.X["optimizer"].dtype == object
    assert {type(level) for level in dataset.X["optimizer"]} == {str}
    assert dataset.y.name == "time_s"
    assert list(dataset.y) == [1.0, 1.1, 1.2]


def test_dates_are_set_aside_unless_asked_for() -> None:
    days = ["2026-05-01", "2026-05-02", "2026-05-03 12:30:00"]
    dataset = read({"measured on": days, "x": VARIED})
    assert list(dataset.X) == ["x"]
    assert noted(dataset, "measured on", "--categorical")
    assert list(read({"day": days, "x": VARIED}, categorical=["day"]).X) == ["day", "x"]
    assert list(read({"version": ["1.2.3", "2.0", "2026-05"], "x": VARIED}).X) == ["version", "x"]


def test_text_is_categorical_with_a_note_of_its_levels() -> None:
    dataset = read({"optimizer": ["adam", "sgd", "adam"], "x": VARIED})
    assert dataset.kinds == {"optimizer": "categorical", "x": "numeric"}
    assert noted(dataset, "optimizer", "(2 levels)")


def test_flags_are_categorical() -> None:
    dataset = read({"fused": [True, False, True], "x": VARIED})
    assert list(dataset.X["fused"]) == ["True", "False", "True"]
    assert dataset.kinds["fused"] == "categorical"


@pytest.mark.parametrize("name", ["n_gpus", "local_batch", "tp", "grad_accum", "num_nodes"])
def test_what_counts_devices_or_batches_is_extrinsic_with_a_note(name: str) -> None:
    dataset = read({name: [1, 2, 4], "n_layers": [2, 4, 8]})
    assert dataset.extrinsic == [name]
    assert dataset.intrinsic == ["n_layers"]
    assert noted(dataset, name, "taken as extrinsic")
    assert noted(dataset, "n_layers", "Taken as intrinsic")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3, 5, 3], "categorical"),
        ([0, 1, 0], "categorical"),
        ([0, 1, 2], "categorical"),
        ([1, 2, 3], "numeric"),
        ([-1, 2, 3], "numeric"),
        (list(range(10)), "categorical"),
        (list(range(11)), "numeric"),
    ],
)
def test_few_numbers_become_categorical_with_a_note(values: list[int], kind: str) -> None:
    dataset = read({"x": values, "y": [float(i) + 1 for i in range(len(values))]})
    assert dataset.kinds["x"] == kind
    assert noted(dataset, "x", "taken as categorical") == (kind == "categorical")


def test_levels_made_of_numbers_have_canonical_names() -> None:
    assert list(read({"x": [0.0, 1.0, 0.0], "y": VARIED}).X["x"]) == ["0", "1", "0"]
    assert list(read({"x": [0.5, 1.0, 0.5], "y": VARIED}).X["x"]) == ["0.5", "1", "0.5"]


def test_a_count_with_two_values_stays_a_number() -> None:
    dataset = read({"n_gpus": [1, 2, 1], "x": VARIED})
    assert (dataset.roles["n_gpus"], dataset.kinds["n_gpus"]) == ("extrinsic", "numeric")


def test_a_count_with_zeros_is_a_switch() -> None:
    dataset = read({"vp": [0, 1, 2], "x": VARIED})
    assert (dataset.roles["vp"], dataset.kinds["vp"]) == ("intrinsic", "categorical")


def test_text_that_is_named_like_a_count_is_intrinsic() -> None:
    dataset = read({"gpus": ["8xA", "8xB", "8xA"], "x": VARIED})
    assert dataset.roles["gpus"] == "intrinsic"


@pytest.mark.parametrize("values", [[8, 8, 8], ["a", "a", "a"]])
@pytest.mark.parametrize("options", [{}, {"intrinsic": ["x", "same"]}])
def test_constant_columns_are_dropped_with_a_note(
    values: list[Any], options: dict[str, Any]
) -> None:
    dataset = read({"x": VARIED, "same": values}, **options)
    assert list(dataset.X.columns) == ["x"]
    assert noted(dataset, "same", f"is constant ({values[0]}) and was dropped")
    assert list(dataset.other["same"]) == values


def test_empty_columns_are_dropped_with_a_note() -> None:
    dataset = read({"x": VARIED, "blank": [None, None, None]})
    assert list(dataset.X.columns) == ["x"]
    assert noted(dataset, "blank", "is empty and was dropped")


def test_one_row_is_a_dataset_with_all_its_columns() -> None:
    dataset = read({"x": [1.5], "model": ["a"], "n_gpus": [2]})
    assert list(dataset.X.columns) == ["x", "model", "n_gpus"]
    assert len(dataset) == 1


def test_named_roles_are_kept_and_other_columns_ignored_with_a_note() -> None:
    dataset = read(
        {"a": VARIED, "b": [0, 1, 0], "c": [2, 3, 4], "n_gpus": [1, 2, 3]},
        intrinsic=["a"],
        extrinsic=["c"],
    )
    assert dataset.roles == {"a": "intrinsic", "c": "extrinsic"}
    assert list(dataset.other.columns) == ["b", "n_gpus"]
    assert noted(dataset, "b", "not named in a role and was ignored")
    assert noted(dataset, "n_gpus", "ignored")


def test_a_named_number_stays_a_number_however_few_its_values() -> None:
    dataset = read({"a": [0, 1, 0], "b": [1, 2, 1], "x": VARIED}, intrinsic=["a", "b"])
    assert dataset.numeric == ["a", "b"]


def test_missing_cells_of_ignored_columns_do_not_matter() -> None:
    dataset = read({"a": VARIED, "b": [1.0, None, 2.0], "c": ["x", None, ""]}, intrinsic=["a"])
    assert np.isnan(dataset.other["b"][1])
    assert list(dataset.other["c"]) == ["x", None, ""]


@pytest.mark.parametrize("values", [[1, 2, 1], [1.0, 2.0, 1.0]])
@pytest.mark.parametrize("options", [{}, {"intrinsic": ["torch", "x"]}])
def test_numbers_that_are_labels_are_levels_with_one_name(
    values: list[float], options: dict[str, Any]
) -> None:
    dataset = read({"torch": values, "x": VARIED}, categorical=["torch"], **options)
    assert list(dataset.X["torch"]) == ["1", "2", "1"]
    assert dataset.kinds["torch"] == "categorical"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1, "1"),
        (1.0, "1"),
        (np.int64(1), "1"),
        (np.float32(1), "1"),
        ("1.0", "1"),
        ("1", "1"),
        (-2.0, "-2"),
        (0.5, "0.5"),
        (64862437376.0, "64862437376"),
        (1e300, "1e+300"),
        (True, "True"),
        (np.bool_(False), "False"),
        ("2.10", "2.10"),
        (" fp16 ", "fp16"),
        ("", ""),
    ],
)
def test_a_level_has_one_name(value: object, name: str) -> None:
    assert level_name(value) == name


def test_a_group_is_kept_beside_the_parameters() -> None:
    dataset = read({"model": ["a", "b", "a"], "x": VARIED}, group="model")
    assert list(dataset.X.columns) == ["x"]
    assert list(dataset.groups("model")) == ["a", "b", "a"]
    assert noted(dataset, "model", "groups the rows")


def test_a_group_may_also_be_named_as_a_parameter() -> None:
    dataset = read(
        {"model": ["a", "b", "a"], "x": VARIED}, group="model", intrinsic=["model", "x"]
    )
    assert list(dataset.X.columns) == ["model", "x"]
    assert list(dataset.groups("model")) == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("columns", "batch"),
    [
        (["global_batch"], "global_batch"),
        (["device_batch"], "device_batch"),
        (["local_batch"], "device_batch"),
        (["micro_batch", "global_batch"], "global_batch"),
        (["batch"], None),
        (["batch_size"], None),
        (["filters"], None),
    ],
)
def test_the_batch_of_the_basis_is_guessed_from_names(
    columns: list[str], batch: str | None
) -> None:
    dataset = read({name: [8, 16, 32] for name in columns})
    assert dataset.basis.batch == batch
    assert any("is taken as the batch of" in note for note in dataset.notes) == bool(batch)


def test_a_constant_batch_still_tells_the_basis() -> None:
    assert read({"x": VARIED, "device_batch": [8, 8, 8]}).basis.batch == "device_batch"


def test_a_basis_that_is_given_is_not_guessed() -> None:
    dataset = read({"device_batch": VARIED}, batch="global_batch", time_per="step")
    assert dataset.basis.ideal_device_power == -1
    assert not any("taken as the batch" in note for note in dataset.notes)


def test_rows_that_repeat_a_configuration_are_counted() -> None:
    assert "2 rows repeat a configuration." in read({"x": [1, 2, 3, 1, 1]}).notes
    assert "1 row repeats a configuration." in read({"x": [1, 2, 3, 1]}).notes
    assert not any("repeat" in note for note in read({"x": [1, 2, 3]}).notes)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"intrinsic": ["a"], "extrinsic": ["a"]}, InvalidInputError, "must have one role"),
        ({"intrinsic": ["a", "a"]}, InvalidInputError, "named more than once"),
        ({"extrinsic": ["model"]}, InvalidInputError, "`model` is text"),
        ({"extrinsic": ["a"], "categorical": ["a"]}, InvalidInputError, "listed in `categorical`"),
        ({"intrinsic": ["time_s"]}, InvalidInputError, "time must not be a parameter"),
        ({"categorical": ["time_s"]}, InvalidInputError, "time must not be a parameter"),
        ({"intrinsic": "a"}, InvalidInputError, "must be a list of names, but got 'a'"),
        ({"intrinsic": ["modle"]}, UnknownNameError, "Did you mean 'model'"),
        ({"extrinsic": ["n_gpu"]}, UnknownNameError, "Did you mean 'n_gpus'"),
        ({"categorical": ["modle"]}, UnknownNameError, "Did you mean 'model'"),
        ({"group": "modle"}, UnknownNameError, "Did you mean 'model'"),
        ({"throughput": "modle"}, UnknownNameError, "Did you mean 'model'"),
        ({"time": "tims_s"}, UnknownNameError, "Did you mean 'time_s'.*`--time`"),
        ({"time_unit": "min"}, UnknownNameError, "time unit"),
        ({"batch": "micro_batch"}, InvalidInputError, "`batch` must be one of"),
    ],
)
def test_options_that_cannot_be_met_are_refused(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        read({"a": VARIED, "model": ["x", "y", "z"], "n_gpus": [1, 2, 4]}, **options)


def test_a_second_time_column_is_left_out_with_a_note() -> None:
    frame = pd.DataFrame({"x": VARIED, "step_ms": [5.0, 6.0, 7.0], "time_s": [1.0, 2.0, 3.0]})
    dataset = Dataset.from_frame(frame, time="step_ms", time_unit="ms")
    assert list(dataset.X.columns) == ["x"]
    assert noted(dataset, "time_s", "was left out")
    assert list(dataset.y) == pytest.approx([0.005, 0.006, 0.007])


def test_negative_and_zero_parameters_are_not_refused() -> None:
    dataset = read({"x": [-1.5, 2.0, 3.0], "offset": [float(i) for i in range(-1, 2)]})
    assert dataset.X["x"].min() == -1.5


def test_the_index_of_a_frame_plays_no_part() -> None:
    frame = pd.DataFrame({"x": VARIED, "g": ["a", "b", "c"], "time_s": VARIED}, index=[5, 5, 9])
    dataset = Dataset.from_frame(frame, group="g")
    assert list(dataset.X.index) == list(dataset.y.index) == list(dataset.other.index) == [0, 1, 2]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2, 3], dtype="Int64"),
        pd.Series([1.0, 2.0, 3.0], dtype="float32"),
        pd.Series([1, "2", 3.0], dtype=object),
        pd.Series(["1", "2", "3"]),
    ],
)
def test_every_spelling_of_numbers_is_numeric(column: pd.Series) -> None:
    dataset = Dataset.from_frame(pd.DataFrame({"x": column, "time_s": VARIED}))
    assert list(dataset.X["x"]) == VARIED


def test_every_type_of_text_is_categorical() -> None:
    column = pd.Categorical(["a", "b", "a"])
    dataset = Dataset.from_frame(pd.DataFrame({"x": column, "time_s": VARIED}))
    assert dataset.X["x"].dtype == object
    assert list(dataset.X["x"]) == ["a", "b", "a"]


def test_a_text_that_names_its_rows_is_set_aside_with_what_to_do() -> None:
    frame = {
        "run": [f"run {i}" for i in range(40)],
        "width": [float(i % 4) + 1 for i in range(40)],
    }
    dataset = read(frame)
    assert dataset.intrinsic == ["width"]
    assert noted(dataset, "run", "--group run")
    kept = read(frame, categorical=["run"])
    assert "run" in kept.categorical


@pytest.mark.parametrize("name", ["throughput", "wall_time_s", "tokens_per_s", "mfu"])
def test_an_outcome_of_the_run_is_set_aside_with_what_to_do(name: str) -> None:
    columns = {"x": VARIED, name: [3.0, None, 9.0]}
    dataset = read(columns)
    assert list(dataset.X) == ["x"]
    assert noted(dataset, name, "set aside; keep it by naming all parameters with `--intrinsic`")
    columns[name] = [3.0, 5.0, 9.0]
    assert list(read(columns, intrinsic=["x", name]).X) == ["x", name]
    assert list(read(columns, categorical=[name]).X) == ["x", name]


def test_a_text_that_is_named_like_a_time_stays_a_parameter() -> None:
    assert list(read({"runtime": ["onnx", "torch", "onnx"], "x": VARIED}).X) == ["runtime", "x"]


@pytest.mark.parametrize("options", [{}, {"intrinsic": ["same", "x"]}])
def test_a_column_that_follows_the_time_exactly_is_noted(options: dict[str, Any]) -> None:
    times = [1.0 + 0.1 * i for i in range(8)]
    x = [1.0, 2.0, 3.0, 4.0, 2.0, 1.0, 3.0, 4.0]
    dataset = read({"same": [5.0 / time for time in times], "x": x}, **options)
    assert noted(dataset, "same", "follows the time almost exactly")
    assert not noted(dataset, "x", "follows the time")


def test_few_values_may_follow_the_time() -> None:
    dataset = read({"x": [1.0 + 0.1 * i for i in range(7)]})
    assert not noted(dataset, "x", "follows the time")


@pytest.mark.parametrize(
    ("n_levels", "n_rows_each", "is_kept"),
    [
        (30, 1, True),
        (31, 4, False),
        (31, 5, True),
        (60, 13, True),
        (200, 5, True),
        (201, 9, False),
    ],
)
def test_a_text_is_a_parameter_where_its_levels_have_rows_enough(
    n_levels: int, n_rows_each: int, is_kept: bool
) -> None:
    models = [f"net {i}" for i in range(n_levels)] * n_rows_each
    dataset = read({"model": models, "x": [float(i % 3) + 1 for i in range(len(models))]})
    assert ("model" in dataset.X) == is_kept
    assert noted(dataset, "model", "was set aside") != is_kept


@pytest.mark.parametrize("name", ["n_gpus", "world_size", "num_nodes", "device_batch", "batch"])
@pytest.mark.parametrize("bad", [0, -2])
def test_a_number_of_devices_or_a_batch_that_is_not_positive_is_refused(
    name: str, bad: int
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read({name: [1, 2, bad, 4], "x": [1, 2, 3, 4]})
    message = str(caught.value)
    assert f"`{name} > 0` must hold, since by its name it" in message
    assert f"but row 3 has {bad}; correct the row or leave it out" in message
    kept = read({name: [1, 2, bad, 4], "x": [1, 2, 3, 4]}, categorical=[name])
    assert kept.kinds[name] == "categorical"


@pytest.mark.parametrize("name", ["num_workers", "grad_accum", "dataloader_workers"])
def test_what_may_be_zero_is_a_switch(name: str) -> None:
    dataset = read({name: [0, 1, 2], "x": VARIED})
    assert noted(dataset, name, "zero among them, and is taken as categorical")


@pytest.mark.parametrize("blank", [None, "", " "])
def test_remarks_on_some_rows_are_set_aside_unless_named(blank: str | None) -> None:
    columns = {"note": ["restarted", blank, "slow"], "x": VARIED}
    dataset = read(columns)
    assert list(dataset.X) == ["x"]
    assert noted(dataset, "note", "holds remarks, in 2 of 3 rows, and was set aside; keep it")
    with pytest.raises(InvalidInputError, match="`note` must have a value in every row"):
        read(columns, intrinsic=["note", "x"])


@pytest.mark.parametrize("blank", [None, "", " "])
def test_blank_cells_of_a_text_are_a_level(blank: str | None) -> None:
    columns = {"comm": ["ring", "ring", "tree", "tree", *[blank] * 6], "x": range(1, 11)}
    for options in ({}, {"intrinsic": ["comm", "x"]}, {"categorical": ["comm"]}):
        dataset = read(columns, **options)
        assert list(dataset.X["comm"]) == [*columns["comm"][:4], *[BLANK] * 6]
        assert noted(dataset, "comm", "has no value in 6 of 10 rows, which is taken as a level")


def test_one_forgotten_level_is_a_level_too_unless_the_column_is_named() -> None:
    columns = {"comm": ["ring", "ring", "tree", "tree", None], "x": range(1, 6)}
    assert list(read(columns).X["comm"])[-1] == BLANK
    with pytest.raises(InvalidInputError, match="`comm` must have a value in every row"):
        read(columns, intrinsic=["comm", "x"])


def test_a_number_that_often_does_not_apply_is_categorical() -> None:
    dataset = read({"k": [2, 100, 2, 100, *[None] * 6], "x": range(1, 11)})
    assert list(dataset.X["k"])[:5] == ["2", "100", "2", "100", BLANK]
    assert noted(dataset, "k", "has no value in 6 of 10 rows, which is taken as a level")
    for columns in ({"k": [2, 100, 2, 100, 2, None]}, {"n_gpus": [1, 2, 1, 2, *[None] * 6]}):
        with pytest.raises(InvalidInputError, match="must have a value in every row"):
            read(columns)


def test_inf_beside_other_words_is_a_word() -> None:
    dataset = read({"mode": ["inf", "inf", "train"], "x": VARIED})
    assert list(dataset.X["mode"]) == ["inf", "inf", "train"]


def test_texts_that_recur_among_few_numbers_make_labels_of_them() -> None:
    versions = ["22.4", "23.1", "22.4", "23.1", "23.1-cuda", "23.1-cuda"]
    assert list(read({"version": versions, "x": range(1, 7)}).X["version"]) == versions
    with pytest.raises(InvalidInputError, match=r"`version` must be numeric, but row 5 has"):
        read({"version": versions[:5], "x": range(1, 6)})


def test_a_batch_that_may_be_of_one_device_or_of_all_is_noted() -> None:
    columns = {"Batch size": [8, 16, 32], "#GPUs": [1, 2, 4]}
    words = "rename it `device_batch` or `global_batch`"
    assert noted(read(columns), "Batch size", words)
    assert not noted(read(columns, time_per="epoch"), "Batch size", words)
    assert not noted(read(columns, batch="global_batch"), "Batch size", words)
    assert not noted(read({"Batch size": [8, 16, 32]}), "Batch size", words)
    assert not noted(read({**columns, "device_batch": VARIED}), "Batch size", words)
    rate = read({**columns, "samples/s": VARIED}, throughput="samples/s")
    assert noted(rate, "Batch size", f"and is taken as that of all: {words} to say which")
