import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paceline.dataset import Dataset, load_dataset, read_extra_p, write_extra_p
from paceline.errors import InvalidInputError

TEXT = """# two parameters, repeats
PARAMETER x
PARAMETER y
POINTS ( 20 1 ) ( 20 2 )
POINTS (30 1) (30 2)

METRIC time
REGION main->solve
DATA 1.0 1.2 1.1
DATA 2.0
DATA 3 3.5
DATA 4
"""


def write(folder: Path, text: str, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def line(**keys: object) -> str:
    return json.dumps({"params": {"p": 1}, "value": 1.0, **keys})


def test_a_text_file_keeps_its_repeats(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, TEXT), intrinsic=["x", "y"])
    assert dataset.X.to_numpy().tolist() == [[20, 1], [20, 2], [30, 1], [30, 2]]
    assert dataset.times_s == ((1.0, 1.2, 1.1), (2.0,), (3.0, 3.5), (4.0,))
    assert dataset.y.tolist() == [1.1, 2.0, 3.25, 4.0]


@pytest.mark.parametrize("points", ["4 8 16", "(4) (8) (16)", "(4)(8)(16)", "((4)) ((8)) ((16))"])
def test_points_of_one_parameter_may_go_without_braces(tmp_path: Path, points: str) -> None:
    text = f"PARAMETER p\nPOINTS {points}\nREGION r\nDATA 1\nDATA 2\nDATA 3\n"
    dataset = read_extra_p(write(tmp_path, text), intrinsic=["p"])
    assert dataset.X["p"].tolist() == [4, 8, 16]


def test_coordinates_may_have_braces_of_their_own(tmp_path: Path) -> None:
    text = TEXT.replace("(30 1) (30 2)", "((30) (1)) ((30) (2))")
    assert read_extra_p(write(tmp_path, text), intrinsic=["x", "y"]).X["x"].tolist()[2:] == [
        30,
        30,
    ]


def test_json_lines_join_the_values_of_a_point(tmp_path: Path) -> None:
    lines = [
        '{"params": {"p": 2, "q": 1}, "value": 5}',
        "",
        '{"params": {"q": 1, "p": 2}, "value": [6, 7]}',
        '{"params": {"p": 4, "q": 3}, "value": 8.5}',
    ]
    path = write(tmp_path, "\n".join(lines), "file.jsonl")
    dataset = load_dataset(path, intrinsic=["p", "q"], time_unit="ms")
    assert dataset.X.to_numpy().tolist() == [[2, 1], [4, 3]]
    assert dataset.times_s == ((0.005, 0.006, 0.007), (0.0085,))


def several(folder: Path, *pairs: tuple[str, str]) -> Path:
    lines = [
        line(params={"p": p}, callpath=region, metric=metric, value=p * (i + 1))
        for i, (region, metric) in enumerate(pairs)
        for p in (1, 2, 4)
    ]
    return write(folder, "\n".join(lines), "several.jsonl")


def test_one_of_several_times_is_chosen_by_name(tmp_path: Path) -> None:
    path = several(tmp_path, ("a", "time"), ("a", "energy"), ("b", "energy"))
    assert read_extra_p(path).y.tolist() == [1, 2, 4]  # the only one called time
    assert read_extra_p(path, time="b").y.tolist() == [3, 6, 12]
    assert read_extra_p(path, time="a:energy").y.tolist() == [2, 4, 8]
    with pytest.raises(InvalidInputError, match="No time is called 'c'"):
        read_extra_p(path, time="c")


def test_unclear_times_are_refused_with_their_names(tmp_path: Path) -> None:
    path = several(tmp_path, ("a", "time"), ("b", "time"))
    with pytest.raises(InvalidInputError, match=r"of 2: a:time, b:time.*--time 'a:time'"):
        read_extra_p(path)


BAD_TEXT = {
    "nothing": ("PARAMETER p\n", "it has none"),
    "field": ("PARAMETER p\nPOINT 1\n", "line 2"),
    "empty": ("PARAMETER p\nPOINTS\n", "line 2"),
    "word": ("PARAMETER p\nPOINTS 1 two\n", "'two'"),
    "infinite": ("PARAMETER p\nPOINTS 1 inf\n", "'inf'"),
    "braces": ("PARAMETER p q\nPOINTS (1 2) 3 4\n", "line 2"),
    "short": ("PARAMETER p q\nPOINTS (1)\n", "2 parameters"),
    "twice": ("PARAMETER p p\n", "differ"),
    "late": ("PARAMETER p\nPOINTS 1\nPARAMETER q\n", "before POINTS"),
    "surplus": ("PARAMETER p\nPOINTS 1\nREGION r\nDATA 1\nDATA 2\n", "line 5 is one more"),
    "missing": ("PARAMETER p\nPOINTS 1 2\nREGION r\nDATA 1\nREGION s\n", "before line 5"),
    "cut": ("PARAMETER p\nPOINTS 1 2\nREGION r\nDATA 1\n", "the end"),
    "negative": ("PARAMETER p\nPOINTS 1 2\nREGION r\nDATA 1\nDATA 3 -2 3\n", "line 5 has -2"),
    "reserved": ("PARAMETER time_s\nPOINTS 1 2\nREGION r\nDATA 1\nDATA 2\n", "time_s"),
}
BAD_LINES = {
    "garbage": ("{", "line 1"),
    "list": ("[1]", "params"),
    "nameless": (line(params={}), "line 1"),
    "nested": (line(params={"p": [1]}), "line 1"),
    "no value": (line(value=None), "value"),
    "no values": (line(value=[]), "value"),
    "text": (line(value="fast"), "'fast'"),
    "truth": (line(value=True), "'True'"),
    "NaN": (line(value=float("nan")), "nan"),
    "huge": (line(value=10**400), "finite"),
    "region": (line(callpath=3), "callpath"),
    "other": (line() + "\n" + line(params={"q": 1}), "line 2"),
    "deep": ("[" * 100_000, "line 1"),
}


@pytest.mark.parametrize(("text", "reason"), BAD_TEXT.values(), ids=BAD_TEXT)
def test_bad_text_files_are_refused_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_extra_p(write(tmp_path, text))
    assert reason in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "reason"), BAD_LINES.values(), ids=BAD_LINES)
def test_bad_json_lines_are_refused_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_extra_p(write(tmp_path, text, "bad.jsonl"))
    assert reason in str(caught.value) and "\n" not in str(caught.value)


def test_other_files_and_questions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="readable"):
        read_extra_p(tmp_path / "none.jsonl")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInputError, match="UTF-8"):
        read_extra_p(tmp_path / "binary.jsonl")
    with pytest.raises(InvalidInputError, match="throughput"):
        read_extra_p(write(tmp_path, TEXT), throughput="time")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.text(alphabet='PARMETOINSDGC ()0123456789.-e\n"{}:,[]pv', max_size=120), st.booleans())
def test_garbage_is_read_or_refused_in_one_line(tmp_path: Path, text: str, as_lines: bool) -> None:
    path = write(tmp_path, text, "any.jsonl" if as_lines else "any.extrap")
    try:
        read_extra_p(path)
    except InvalidInputError as error:
        assert "\n" not in str(error)


numbers = st.floats(1e-9, 1e9)
points = st.lists(
    st.tuples(numbers, numbers, st.sampled_from(["adam", "sgd", "x:y z"])),
    min_size=3,
    max_size=12,
    unique=True,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(rows=points, data=st.data(), form=st.sampled_from(["text", "jsonl"]))
def test_what_is_written_is_read(tmp_path: Path, rows: list, data, form: str) -> None:
    frame = pd.DataFrame(rows, columns=["width", "n_devices", "optimizer"])
    if form == "text":
        frame = frame.drop(columns="optimizer").drop_duplicates(ignore_index=True)
    roles = {"intrinsic": [n for n in frame if n != "n_devices"], "extrinsic": ["n_devices"]}
    times = [data.draw(st.lists(numbers, min_size=1, max_size=3)) for _ in range(len(frame))]
    medians = [float(np.median(row)) for row in times]
    parts = Dataset.from_frame(frame.assign(time_s=medians), **roles)
    dataset = Dataset(
        X=parts.X,
        y=parts.y,
        roles=parts.roles,
        kinds=parts.kinds,
        times_s=tuple(map(tuple, times)),
    )
    path = tmp_path / "round.trip"
    if not dataset.numeric or (form == "text" and dataset.categorical):
        return  # a column that never varies was set aside
    path = path.with_suffix(".jsonl" if form == "jsonl" else ".extrap")
    write_extra_p(dataset, path)
    again = read_extra_p(
        path,
        intrinsic=[n for n in dataset.X if n != "n_devices"],
        extrinsic=[n for n in dataset.X if n == "n_devices"],
        categorical=dataset.categorical,
    )
    assert merged(again) == merged(dataset)
    assert again.kinds == dataset.kinds and again.roles == dataset.roles


def merged(dataset: Dataset) -> dict:
    """All times of every configuration."""
    found: dict = {}
    for row, times in zip(dataset.X.to_dict("records"), dataset.times_s or (), strict=True):
        found.setdefault(tuple(sorted(row.items())), []).extend(times)
    return found


def test_a_text_file_holds_four_numeric_parameters_at_most(tmp_path: Path) -> None:
    frame = pd.DataFrame({**{f"p{i}": [1.0, 2, 3] for i in range(5)}, "time_s": [1.0, 2, 3]})
    names = [f"p{i}" for i in range(5)]
    dataset = Dataset.from_frame(frame, intrinsic=names)
    with pytest.raises(InvalidInputError, match=r"\.jsonl"):
        write_extra_p(dataset, tmp_path / "five.extrap")
    write_extra_p(dataset, tmp_path / "five.jsonl")
    assert read_extra_p(tmp_path / "five.jsonl", intrinsic=names).X.shape == (3, 5)


def test_levels_that_cannot_be_named_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"p": [1.0, 2, 3], "net": ["a=b", "c", "c"], "time_s": [1.0, 2, 3]})
    dataset = Dataset.from_frame(frame, intrinsic=["p", "net"])
    with pytest.raises(InvalidInputError, match="'a=b'"):
        write_extra_p(dataset, tmp_path / "file.jsonl")
