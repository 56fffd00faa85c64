"""Every bad table is refused in one line that says the rule, what was got and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from paceline.dataset import Dataset, load_dataset, read_csv
from paceline.errors import InvalidInputError, SchemaError, UnknownNameError


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(InvalidInputError) as caught:
        read_csv(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".") or message.endswith("?")
    return message


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "runs.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


@pytest.mark.parametrize("cell", ["abc", "12ms", "1_000", "0x10", "None"])
def test_text_in_a_parameter_of_numbers_names_line_and_value(tmp_path: Path, cell: str) -> None:
    path = write(tmp_path, f"x,time_s\n1,1\n2,1\n{cell},1\n")
    message = refusal(path)
    assert f"`x` must be numeric, but line 4 has '{cell}'" in message
    assert "list `x` in `categorical`" in message


@pytest.mark.parametrize("cell", ["abc", "12ms", "1,5"])
def test_text_in_the_time_names_line_and_value(tmp_path: Path, cell: str) -> None:
    message = refusal(write(tmp_path, f'x,time_s\n1,1\n2,"{cell}"\n3,1\n'))
    assert f"`time_s` must be numeric, but line 3 has '{cell}'" in message
    assert "categorical" not in message


def test_a_decimal_comma_gets_its_own_advice(tmp_path: Path) -> None:
    assert "write decimals with a point" in refusal(write(tmp_path, "x;time_s\n1;0,5\n2;0,7\n"))


@pytest.mark.parametrize("cells", [("1,024", "2,048", "512"), ("2,048", "12,288", "2,048")])
def test_commas_that_may_mean_two_things_are_refused_with_both(
    tmp_path: Path, cells: tuple[str, ...]
) -> None:
    lines = "".join(f"{cell};1\n" for cell in ("3", *cells))
    message = refusal(write(tmp_path, f"x;time_s\n{lines}"))
    assert f"line 3 has '{cells[0]}'; write {cells[0].replace(',', '')} if the comma" in message
    assert f"separates thousands, {cells[0].replace(',', '.')} if it marks decimals" in message
    assert "list `x` in `categorical`" in message


def test_a_clear_number_with_commas_among_texts_gets_its_own_advice(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, "x;time_s\n1;1\n2;1\n1,024,000;1\nmany;1\n"))
    assert "line 4 has '1,024,000'; write 1024000, without commas" in message


def test_a_time_of_nothing_but_text_is_refused(tmp_path: Path) -> None:
    assert "line 2 has 'fast'" in refusal(write(tmp_path, "x,time_s\n1,fast\n2,slow\n"))


def test_a_column_with_few_numbers_is_text(tmp_path: Path) -> None:
    dataset = read_csv(write(tmp_path, "x,time_s\n1,1\na,1\nb,1\n"))
    assert dataset.categorical == ["x"]


def test_bad_cells_of_a_column_listed_as_categorical_are_levels(tmp_path: Path) -> None:
    path = write(tmp_path, "x,time_s\n1,1\n2.0,1\nnightly,1\n")
    assert list(read_csv(path, categorical=["x"]).X["x"]) == ["1", "2", "nightly"]


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "NA", "n/a", "null"])
@pytest.mark.parametrize("name", ["x", "time_s"])
def test_a_missing_number_names_the_line(tmp_path: Path, cell: str, name: str) -> None:
    cells = {"x": "5", "time_s": "1", name: cell}
    path = write(tmp_path, f"x,time_s\n1,1\n2,1\n{cells['x']},{cells['time_s']}\n3,1\n")
    message = refusal(path)
    assert f"`{name}` must have a value in every row, but line 4 has none" in message
    assert "leave the row out or fill it" in message


@pytest.mark.parametrize("cell", ["", "nan", " "])
def test_a_missing_level_names_the_line(tmp_path: Path, cell: str) -> None:
    path = write(tmp_path, f"m,time_s\na,1\n{cell},1\nb,1\n")
    for options in ({"intrinsic": ["m"]}, {"categorical": ["m"]}):
        message = refusal(path, **options)
        assert "`m` must have a value in every row, but line 3 has none" in message


@pytest.mark.parametrize("name", ["x", "time_s"])
def test_missing_cells_are_counted_with_every_way_out(tmp_path: Path, name: str) -> None:
    blank = ",1\n" if name == "x" else "7,\n"
    message = refusal(write(tmp_path, f"x,time_s\n1,1\n{blank}2,1\n{blank}3,1\n"))
    assert "but 2 rows have none, line 3 the first; leave them out or fill them" in message
    assert ("leave the column out by naming the others with `--intr" in message) == (name == "x")


def test_any_name_of_a_column_can_stand_in_an_error(tmp_path: Path) -> None:
    assert "`{x} %s` must have" in refusal(write(tmp_path, "{x} %s,time_s\n1,1\n2,1\n,1\n"))


def test_a_row_that_ends_early_misses_values(tmp_path: Path) -> None:
    assert "line 3 has none" in refusal(write(tmp_path, "x,time_s\n1,1\n2\n3,1\n"))


def test_a_missing_group_names_the_line(tmp_path: Path) -> None:
    path = write(tmp_path, "g,x,time_s\na,1,1\n,2,1\nb,3,1\n")
    assert "`g` must have a value in every row, but line 3" in refusal(path, group="g")


@pytest.mark.parametrize("cell", ["inf", "-inf", "Infinity", "1e999"])
@pytest.mark.parametrize("name", ["x", "time_s"])
def test_an_infinite_number_names_the_line(tmp_path: Path, cell: str, name: str) -> None:
    cells = {"x": "5", "time_s": "1", name: cell}
    path = write(tmp_path, f"x,time_s\n1,1\n2,1\n{cells['x']},{cells['time_s']}\n")
    assert f"`{name}` must be finite, but line 4 has an infinite value" in refusal(path)


@pytest.mark.parametrize("cell", ["0", "-1", "-0.5", "0.0"])
def test_a_time_that_is_not_positive_names_line_and_value(tmp_path: Path, cell: str) -> None:
    message = refusal(write(tmp_path, f"x,time_s\n1,1\n2,{cell}\n3,1\n"))
    assert f"`time_s` must be positive, but line 3 has {float(cell):g}" in message


def test_lines_are_counted_as_an_editor_does(tmp_path: Path) -> None:
    path = write(tmp_path, 'm,x,time_s\n"two\nlines",1,1\n\nb,2,1\n\n\nc,oops,1\nd,4,1\ne,5,1\n')
    assert "line 8 has 'oops'" in refusal(path)


def test_lines_of_blanks_are_counted_but_are_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path, " \n\nx,time_s\n1,1\n  \n2,1\n\t\n3,-1\n")
    assert "line 8 has -1" in refusal(path)


def test_lines_are_counted_so_with_windows_line_ends(tmp_path: Path) -> None:
    assert "line 3 has 0" in refusal(write(tmp_path, "x,time_s\r\n1,1\r\n2,0\r\n"))


@pytest.mark.parametrize("text", ["", "\n\n", "  \n", "\ufeff"])
def test_an_empty_file_is_refused(tmp_path: Path, text: str) -> None:
    assert "must have a header and rows, but it is empty" in refusal(write(tmp_path, text))


@pytest.mark.parametrize("text", ["x,time_s", "x,time_s\n", "x,time_s\n\n\n"])
def test_a_header_alone_is_refused(tmp_path: Path, text: str) -> None:
    assert "must have at least one row below its header" in refusal(write(tmp_path, text))


@pytest.mark.parametrize(
    "content",
    [
        b"x,time_s\n1,\x001\n",
        b"\x89PNG\r\n\x1a\n\x00\x00",
        b"x,time_s\n\xff\xfe,1\n",
        b"\xe9,b\n1,2\n",
    ],
)
def test_a_binary_file_is_refused(tmp_path: Path, content: bytes) -> None:
    assert "must be a text file in UTF-8" in refusal(write(tmp_path, content))


def test_bytes_that_are_no_text_are_refused_however_late(tmp_path: Path) -> None:
    content = b"x,time_s\n" + b"1,1\n" * 400_000 + b"\xff,1\n"
    assert "must be a text file in UTF-8" in refusal(write(tmp_path, content))


def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    assert "must differ, but got 'x' twice" in refusal(write(tmp_path, "x, x,time_s\n1,2,3\n"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x,time_s\n1,1\n2,1,9\n3,1\n", 3),
        ("x,time_s\n1,1,9\n2,1\n3,1\n", 2),
        ("x,time_s\n1,1,9\n2,1,9\n", 2),
        ("x,time_s\n1,1,9,9\n2,1,9\n", 2),
    ],
)
def test_a_line_with_too_many_fields_is_named(tmp_path: Path, text: str, line: int) -> None:
    message = refusal(write(tmp_path, text))
    assert f"must have the 2 fields of the header, but line {line} has" in message


def test_an_open_quote_is_refused(tmp_path: Path) -> None:
    assert "must be a table, but got" in refusal(write(tmp_path, 'x,time_s\n1,"1\n2,1\n'))
    long = 'x,time_s\n1,"1\n' + "2,1\n" * 100_000
    assert "must be a table, but got" in refusal(write(tmp_path, long))


def test_a_missing_time_column_gets_the_nearest_name(tmp_path: Path) -> None:
    path = write(tmp_path, "x,times\n1,1\n2,1\n")
    with pytest.raises(UnknownNameError, match=r"Did you mean 'times'\?.*`--time`"):
        read_csv(path)


def test_a_misspelt_column_gets_the_nearest_name(tmp_path: Path) -> None:
    path = write(tmp_path, "n_gpus,time_s\n1,1\n2,1\n")
    with pytest.raises(UnknownNameError, match="Did you mean 'n_gpus'"):
        read_csv(path, extrinsic=["n_gpu"])


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "must be readable" in refusal(tmp_path / "absent.csv")
    assert "must be readable" in refusal(tmp_path)


def test_an_unknown_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError, match=r"must end in \.csv, \.db, \.parquet, \.extrap or \.jsonl"
    ):
        load_dataset(tmp_path / "runs.xlsx")


def test_bad_files_are_errors_of_schema_with_their_path(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    with pytest.raises(SchemaError) as caught:
        read_csv(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ([[1, 2]], "must be a DataFrame, but got list"),
        (pd.DataFrame({"x": [], "time_s": []}), "at least one row"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "must differ, but got 'x' twice"),
        (pd.DataFrame([[1, 2]], columns=["x", 3]), "must be texts, but got 3"),
        (pd.DataFrame({"x": [1, None], "time_s": [1, 2]}), "but row 2 has none"),
    ],
)
def test_a_frame_that_is_no_table_is_refused(frame: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        Dataset.from_frame(frame)
