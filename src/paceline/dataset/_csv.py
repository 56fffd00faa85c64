"""Tables in text files: CSV, also with semicolons or tabs."""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from paceline.dataset._dataset import Dataset
from paceline.dataset._frame import read_frame
from paceline.dataset._options import ReadKeywords, ReadOptions
from paceline.dataset._thousands import join_thousands
from paceline.errors import InvalidInputError, SchemaError

_ENCODING = "utf-8-sig"  # also reads files that begin with a byte-order mark
_CHUNK_BYTES = 1 << 20

# Older versions read floats only nearly; newer ones read exactly and warn about the option.
_PANDAS_VERSION = tuple(int(part) for part in pd.__version__.split(".")[:2])
_EXACT: dict[str, Any] = {} if _PANDAS_VERSION >= (3, 1) else {"float_precision": "round_trip"}


def read_csv(path: str | Path, **keywords: Unpack[ReadKeywords]) -> Dataset:
    """Return the dataset in a CSV file.

    Parameters
    ----------
    path
        A text file in UTF-8 with one header line; commas, semicolons or tabs.
    **keywords
        As in `Dataset.from_frame`.

    Raises
    ------
    InvalidInputError
        For a file that is no such table, or a bad cell; names the line.
    """
    options = ReadOptions(**keywords)
    table = _open_table(Path(path))
    frame = table.read(labels=options.categorical)
    fields = read_frame(frame, options, table.locate)
    unnamed = [f"Column {i + 1} has no name and was left out." for i in table.unnamed]
    notes = (*unnamed, *fields.pop("notes"))
    return Dataset(**fields, notes=notes, provenance={"file": Path(path).name})


def read_table(path: str | Path, labels: Sequence[str] = ()) -> pd.DataFrame:
    """Return a CSV file as a plain table, read with the same care as a dataset.

    Numbers are numbers, everything else, and the columns of `labels`, is text as it was
    written; blank cells are missing.
    """
    return join_thousands(_open_table(Path(path)).read(labels), labels)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A text table whose header has been read."""

    path: Path
    separator: str
    header: tuple[str, ...]
    header_line: int

    @property
    def unnamed(self) -> list[int]:
        return [i for i, name in enumerate(self.header) if not name]

    def read(self, labels: Sequence[str] = ()) -> pd.DataFrame:
        frame = self._parse()
        # pandas rewrites "true" as True and 2.10 as 2.1; what the user wrote is the level's name.
        flags = [name for name in frame.columns if name in labels or _is_boolean(frame[name])]
        if flags:
            texts = self._parse(dtype=dict.fromkeys(flags, str))
            frame = frame.assign(**{name: texts[name] for name in flags})
        if not len(frame):
            raise SchemaError(self.path, "must have at least one row below its header.")
        return frame

    def locate(self, position: int) -> str:
        """Name the line of a row, counted as an editor does."""
        for i, (line, _) in enumerate(self._rows()):
            if i == position:
                return f"line {line}"
        return f"row {position + 1}"

    def _parse(self, **keywords: Any) -> pd.DataFrame:
        # Numbers stand for columns without a name; the last one catches surplus fields.
        names = [name or i for i, name in enumerate((*self.header, ""))]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.simplefilter("error", pd.errors.ParserWarning)  # fields would be lost
                frame: pd.DataFrame = pd.read_csv(
                    self.path,
                    sep=self.separator,
                    names=names,
                    header=None,
                    skiprows=self.header_line,
                    index_col=False,
                    encoding=_ENCODING,
                    keep_default_na=False,
                    na_values=[""],
                    low_memory=False,
                    **_EXACT,
                    **keywords,
                )
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            raise self._ragged(str(error)) from error
        except UnicodeDecodeError as error:
            raise _not_text(self.path) from error
        if frame[len(self.header)].notna().any():
            raise self._ragged("surplus fields")
        return frame[[name for name in self.header if name]]

    def _ragged(self, problem: str) -> InvalidInputError:
        for line, cells in self._rows():
            if len(cells) > len(self.header):
                return SchemaError(
                    self.path,
                    f"every line must have the {len(self.header)} fields of the header, "
                    f"but line {line} has {len(cells)}; correct the line.",
                )
        return SchemaError(self.path, f"must be a table, but got: {' '.join(problem.split())}.")

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line and the cells of every row that is not blank."""
        with self.path.open(encoding=_ENCODING, errors="replace", newline="") as file:
            reader = csv.reader(islice(file, self.header_line, None), delimiter=self.separator)
            started = 1
            # A quote that is never closed makes a field without end.
            with suppress(csv.Error):
                for cells in reader:
                    if len(cells) > 1 or "".join(cells).strip():
                        yield self.header_line + started, cells
                    started = reader.line_num + 1


def _open_table(path: Path) -> _Table:
    _check_text(path)
    try:
        number, line = _first_line(path)
    except UnicodeDecodeError as error:
        raise _not_text(path) from error
    if not line:
        raise SchemaError(path, "must have a header and rows, but it is empty.")
    separator = _sniff(line)
    header = tuple(name.strip() for name in next(csv.reader([line], delimiter=separator)))
    repeated = [name for name, n in Counter(header).items() if n > 1 and name]
    if repeated:
        raise SchemaError(path, f"names of columns must differ, but got {repeated[0]!r} twice.")
    return _Table(path=path, separator=separator, header=header, header_line=number)


def _first_line(path: Path) -> tuple[int, str]:
    with path.open(encoding=_ENCODING) as file:
        lines = ((i, line.strip("\r\n")) for i, line in enumerate(file, 1) if line.strip())
        return next(lines, (0, ""))


def _sniff(line: str) -> str:
    """Return what separates the names of a header."""
    counts = {separator: line.count(separator) for separator in ",;\t"}
    return max(counts, key=lambda separator: counts[separator])  # a tie goes to the comma


def _check_text(path: Path) -> None:
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                if b"\0" in chunk:
                    raise _not_text(path)
    except OSError as error:
        raise InvalidInputError(
            f"A data file must be readable, but {str(path)!r} is not: {error.strerror}."
        ) from error


def _not_text(path: Path) -> SchemaError:
    return SchemaError(path, "must be a text file in UTF-8, but it is not; is it a CSV file?")


def _is_boolean(column: pd.Series[Any]) -> bool:
    return pd.api.types.infer_dtype(column, skipna=True) == "boolean"
