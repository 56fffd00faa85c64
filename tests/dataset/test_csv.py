"""Tables in text files that are read as people write them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.dataset import Dataset, read_csv, read_table


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "runs.csv"
    path.write_bytes(text.encode("utf-8"))
    return path


ROWS = [("a", 1.5, 1.0), ("b", 2.5, 2.0), ("a", 3.5, 3.0)]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_common_ways_to_write_a_table_are_read(
    tmp_path: Path, separator: str, mark: str, end: str
) -> None:
    lines = [("m", "x", "time_s"), *ROWS]
    text = mark + end.join(separator.join(map(str, line)) for line in lines)
    dataset = read_csv(write(tmp_path, text))
    assert list(dataset.X["m"]) == ["a", "b", "a"]
    assert list(dataset.X["x"]) == [1.5, 2.5, 3.5]
    assert list(dataset.y) == [1.0, 2.0, 3.0]


def test_blanks_around_names_and_levels_do_not_count(tmp_path: Path) -> None:
    dataset = read_csv(write(tmp_path, "m , x, time_s\n a, 1, 1\na , 2 ,2\nb,3,3\n"))
    assert list(dataset.X.columns) == ["m", "x"]
    assert list(dataset.X["m"]) == ["a", "a", "b"]
    assert list(dataset.X["x"]) == [1.0, 2.0, 3.0]


def test_blank_lines_are_no_rows(tmp_path: Path) -> None:
    assert len(read_csv(write(tmp_path, "\nx,time_s\n\n1,1\n\n2,2\n\n"))) == 2


def test_flags_keep_their_spelling(tmp_path: Path) -> None:
    text = "fused,x,time_s\ntrue,1,1\nfalse,2,1\ntrue,3,1\n"
    assert list(read_csv(write(tmp_path, text)).X["fused"]) == ["true", "false", "true"]


def test_none_and_na_are_levels_of_a_text_column(tmp_path: Path) -> None:
    text = "region,zero,time_s\nNA,None,1\nEU,full,1\nNA,None,1\n"
    dataset = read_csv(write(tmp_path, text))
    assert list(dataset.X["region"]) == ["NA", "EU", "NA"]
    assert list(dataset.X["zero"]) == ["None", "full", "None"]


def test_a_column_without_a_name_is_left_out_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    pd.DataFrame({"x": [3, 4, 5], "time_s": [1, 2, 3]}).to_csv(path)  # with the index
    dataset = read_csv(path)
    assert list(dataset.X.columns) == ["x"]
    assert "Column 1 has no name and was left out." in dataset.notes


def test_huge_whole_numbers_are_numbers(tmp_path: Path) -> None:
    text = "x,time_s\n99999999999999999999999,1\n1,1\n2,1\n"
    assert read_csv(write(tmp_path, text)).X["x"].max() == 1e23


def test_the_file_is_the_provenance(tmp_path: Path) -> None:
    assert read_csv(write(tmp_path, "x,time_s\n1,1\n")).provenance == {"file": "runs.csv"}


def test_every_way_to_name_the_time_works(tmp_path: Path) -> None:
    path = write(tmp_path, "n_gpus,step_ms\n1,100\n2,200\n")
    dataset = read_csv(path, time="step_ms", time_unit="ms", time_per="step")
    assert list(dataset.y) == [0.1, 0.2]
    assert dataset.basis.time_per == "step"


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=20))
def test_floats_are_read_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, times: list[float]
) -> None:
    path = tmp_path_factory.mktemp("floats") / "runs.csv"
    frame = pd.DataFrame({"x": [1.0 + i for i in range(len(times))], "time_s": times})
    Dataset.from_frame(frame).to_csv(path)
    assert read_csv(path).y.tolist() == times


def test_a_plain_table_is_read_with_the_same_care(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "\ufeffm;x;flag\na;1;true\n;2.5;false\n"))
    assert list(table.columns) == ["m", "x", "flag"]
    assert table["x"].tolist() == [1.0, 2.5]
    assert table["flag"].tolist() == ["true", "false"]
    assert table["m"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1,024", "1,024,000", "512"], [1024.0, 1024000.0, 512.0]),
        (["1,024", "2,048.5", "-1,000"], [1024.0, 2048.5, -1000.0]),
        (["1,024", "0.5", "1e3"], [1024.0, 0.5, 1000.0]),
    ],
)
def test_commas_that_can_only_separate_thousands_do_so_with_a_note(
    tmp_path: Path, cells: list[str], values: list[float]
) -> None:
    lines = "".join(f"{cell};{i + 1}\n" for i, cell in enumerate(cells))
    path = write(tmp_path, f"x;time_s\n{lines}")
    dataset = read_csv(path)
    assert list(dataset.X["x"]) == values
    assert any("`x` has commas between thousands, as '" in note for note in dataset.notes)
    assert list(read_table(path)["x"]) == values
    assert list(read_csv(path, categorical=["x"]).X["x"]) == cells


def test_thousands_of_a_time_are_read(tmp_path: Path) -> None:
    dataset = read_csv(write(tmp_path, "x;step_ms\n1;1,000.5\n2;999\n"), time="step_ms")
    assert list(dataset.y) == pytest.approx([1.0005, 0.999])


def test_commas_of_names_stay(tmp_path: Path) -> None:
    path = write(tmp_path, "mesh;time_s\n1,024,000 a;1\n2,4;1\n8,16;1\n")
    assert list(read_csv(path).X["mesh"]) == ["1,024,000 a", "2,4", "8,16"]
