"""Cells of a table as numbers or as levels, each bad one named by its row."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from paceline.errors import InvalidInputError

Locate: TypeAlias = Callable[[int], str]
Numbers: TypeAlias = npt.NDArray[np.float64]
Levels: TypeAlias = npt.NDArray[np.object_]
Column: TypeAlias = "pd.Series[Any]"

# Blank and NaN are missing everywhere; "NA" may be a level (a region, say), never a number.
_MISSING_LEVELS = {"", "nan"}
_MISSING_NUMBERS = _MISSING_LEVELS | {"na", "n/a", "null", "<na>"}
BLANK = "(blank)"  # the level of a cell without one
_FEW_NUMBERS = 10
_OFTEN, _FEW_BLANKS = 0.1, 5
_LARGEST_PLAIN_INTEGER = 1e15
_WHOLE_NUMBER = re.compile(r"([+-]?\d+)\.0+")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")


def level_name(value: object) -> str:
    """Return the one name of a level, however its value is written.

    Whole numbers lose their fraction, so that 1, 1.0 and "1.0" are the same level; any other
    text stays as it is but for blanks around it (2.1 and 2.10 may be two versions).

    Examples
    --------
    >>> level_name(1.0), level_name(1), level_name("1.0"), level_name("2.10"), level_name(" fp16")
    ('1', '1', '1', '2.10', 'fp16')
    """
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        is_whole = number.is_integer() and abs(number) < _LARGEST_PLAIN_INTEGER
        return str(int(number)) if is_whole else repr(number)
    text = str(value).strip()
    whole = _WHOLE_NUMBER.fullmatch(text)
    return whole[1] if whole else text


def is_numeric(column: Column) -> bool:
    """Return whether a column holds numbers: at least half of its cells that are not missing.

    Not if the others recur among few numbers, as 2022.4-cuda does among versions; a slip occurs
    once. The word "inf" is no sign of numbers: it may be short for inference.
    """
    if pd.api.types.is_bool_dtype(column.dtype):
        return False
    if pd.api.types.is_numeric_dtype(column.dtype):
        return True
    codes, cells = _distinct(column)
    counts = np.bincount(codes[codes >= 0], minlength=len(cells))
    numbers = [1.0 if is_grouped(cell) else parse_number(cell) for cell in cells]
    bad = [int(c) for c, x in zip(counts, numbers, strict=True) if x is None]
    good = [int(c) for c, x in zip(counts, numbers, strict=True) if _is_finite(x)]
    are_labels = len(good) <= _FEW_NUMBERS and sum(bad) >= 2 * max(len(bad), 1)
    return bool(good) and sum(good) >= sum(bad) and not are_labels


def is_empty(column: Column) -> bool:
    """Return whether a column has no value in any row."""
    if column.isna().all():
        return True
    if pd.api.types.is_numeric_dtype(column.dtype):
        return False
    return all(_is_missing_level(cell) for cell in _distinct(column)[1])


def read_numbers(column: Column, locate: Locate, *, is_parameter: bool = True) -> Numbers:
    """Return a column as finite numbers.

    Parameters
    ----------
    column
        The column; its name stands in the errors.
    locate
        Names a row for people, given its position.
    is_parameter
        Whether naming the others, or listing the column in `categorical`, is a way out.

    Raises
    ------
    InvalidInputError
        For a cell that is text, missing or infinite; names its row.
    """
    if pd.api.types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = _parse_numbers(column, locate, is_parameter=is_parameter)
    _refuse_missing(np.isnan(values), column, locate, is_parameter=is_parameter)
    infinite = np.isinf(values)
    if infinite.any():
        raise InvalidInputError(
            f"`{column.name}` must be finite, but {locate(int(np.argmax(infinite)))} has an "
            "infinite value; leave the row out or correct it."
        )
    return values


def is_grouped(cell: object) -> bool:
    """Return whether a cell has commas, and each stands where one between thousands would."""
    return bool(_GROUPED.fullmatch(str(cell).strip()))


def has_decimal_comma(cell: str) -> bool:
    """Return whether the one comma of a cell may mark its decimals."""
    return bool(_DECIMAL_COMMA.fullmatch(cell.strip()))


def count_missing(column: Column) -> int:
    """Return how many cells of a column have no value."""
    codes, cells = _distinct(column)
    return int(_missing_levels(cells)[codes].sum())


def is_often_blank(column: Column) -> bool:
    """Return whether many cells are blank: not forgotten, but what does not apply there."""
    return count_missing(column) >= max(_OFTEN * len(column), _FEW_BLANKS)


def read_levels(
    column: Column, locate: Locate, *, is_parameter: bool = True, may_be_blank: bool = False
) -> Levels:
    """Return a column as names of levels.

    Parameters
    ----------
    column, locate, is_parameter
        Those of `read_numbers`.
    may_be_blank
        Whether a blank cell is a level of its own.

    Raises
    ------
    InvalidInputError
        For a missing cell, unless it may be blank; names its row.
    """
    codes, cells = _distinct(column)
    is_missing = _missing_levels(cells)
    if not may_be_blank:
        _refuse_missing(is_missing[codes], column, locate, is_parameter=is_parameter)
    names = np.array([*map(level_name, cells), BLANK], dtype=object)
    names[is_missing] = BLANK
    return np.asarray(names[codes])


def plain_column(column: Column) -> Column:
    """Return a column that is no parameter as whole numbers, floats, booleans or text."""
    if column.isna().all():
        return pd.Series(np.full(len(column), np.nan), name=column.name)
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        plain = {"b": np.bool_, "f": np.float64}.get(dtype.kind, np.int64)
        return pd.Series(column.to_numpy().astype(plain), name=column.name)
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
        return pd.Series(column.to_numpy(np.float64, na_value=np.nan), name=column.name)
    codes, cells = _distinct(column)
    texts = np.array([*map(str, cells), None], dtype=object)
    return pd.Series(texts[codes], dtype=object, name=column.name)


def _distinct(column: Column) -> tuple[npt.NDArray[np.intp], list[Any]]:
    codes, cells = pd.factorize(column)
    return codes, list(cells)


def _parse_numbers(column: Column, locate: Locate, *, is_parameter: bool) -> Numbers:
    codes, cells = _distinct(column)
    numbers = [parse_number(cell) for cell in cells]
    bad = np.array([number is None for number in numbers] + [False])[codes]
    if bad.any():
        row = int(np.argmax(bad))
        advice = _advice(str(cells[codes[row]]), str(column.name), is_parameter=is_parameter)
        raise InvalidInputError(
            f"`{column.name}` must be numeric, but {locate(row)} has {str(cells[codes[row]])!r}; "
            f"{advice}."
        )
    return np.array([*numbers, math.nan], dtype=np.float64)[codes]


def _advice(cell: str, name: str, *, is_parameter: bool) -> str:
    label = f", or list `{name}` in `categorical` if its values are labels"
    return f"{_comma_advice(cell.strip()) or 'correct the cell'}{label if is_parameter else ''}"


def _comma_advice(cell: str) -> str | None:
    """Return how to write a number with commas so that it has one meaning."""
    whole = cell.replace(",", "")
    if is_grouped(cell) and has_decimal_comma(cell):
        point = cell.replace(",", ".")
        return f"write {whole} if the comma separates thousands, {point} if it marks decimals"
    if is_grouped(cell):
        return f"write {whole}, without commas"
    return "write decimals with a point" if has_decimal_comma(cell) else None


def parse_number(cell: object) -> float | None:
    """Return a cell as a number, NaN when it is missing, None when it is something else."""
    if isinstance(cell, bool | np.bool_):
        return None
    text = str(cell).strip().lower()
    if text in _MISSING_NUMBERS:
        return math.nan
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _is_finite(number: float | None) -> bool:
    return number is not None and math.isfinite(number)


def _is_missing_level(cell: object) -> bool:
    return str(cell).strip().lower() in _MISSING_LEVELS


def _missing_levels(cells: list[Any]) -> npt.NDArray[np.bool_]:
    """Return which cells have no value; code -1, missing, finds the last entry."""
    return np.array([_is_missing_level(cell) for cell in cells] + [True])


def _refuse_missing(
    missing: npt.NDArray[np.bool_], column: Column, locate: Locate, *, is_parameter: bool
) -> None:
    if not missing.any():
        return
    first, n_missing = locate(int(np.argmax(missing))), int(missing.sum())
    got = (
        f"{first} has none" if n_missing == 1 else f"{n_missing} rows have none, {first} the first"
    )
    cure = "leave the row out or fill it" if n_missing == 1 else "leave them out or fill them"
    aside = ", or leave the column out by naming the others with `--intrinsic` and `--extrinsic`"
    raise InvalidInputError(
        f"`{column.name}` must have a value in every row, but {got}; "
        f"{cure}{aside if is_parameter else ''}."
    )
