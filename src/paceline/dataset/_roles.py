"""Which columns are parameters, with which role and kind; every guess leaves a note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from paceline.dataset._aside import note_blanks, reason_aside
from paceline.dataset._basis import Batch
from paceline.dataset._cells import (
    Column,
    Levels,
    Locate,
    Numbers,
    is_numeric,
    is_often_blank,
    level_name,
    read_levels,
    read_numbers,
)
from paceline.dataset._names import Count, batch_of, counts_devices_plainly, counts_what
from paceline.dataset._options import RESERVED, ReadOptions
from paceline.errors import InvalidInputError
from paceline.space import Kind, Role

# A number with a zero and few values is more often a switch than a quantity.
_MOST_SWITCH_VALUES = 10

_COUNT_WORDS: dict[Count, str] = {
    "devices": "a number of devices, nodes, workers or ranks",
    "batch": "a batch",
    "accumulation": "a number of accumulated steps",
    "degree": "a parallel degree",
}


@dataclass(slots=True)
class Roles:
    """What was made of the columns."""

    columns: dict[str, Numbers | Levels] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    constant: list[str] = field(default_factory=list)
    keep_constant: bool = False
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, role: Role, values: Numbers | Levels) -> None:
        """Add a parameter unless it is constant, which says nothing about the time."""
        # One row cannot tell what is constant.
        is_constant = len(values) > 1 and bool(np.all(values == values[0]))
        if is_constant and not self.keep_constant:
            self.notes.append(f"`{name}` is constant ({level_name(values[0])}) and was dropped.")
            self.constant.append(name)
            return
        self.columns[name] = values
        self.roles[name] = role
        self.kinds[name] = "categorical" if values.dtype == object else "numeric"


def assign_roles(frame: pd.DataFrame, options: ReadOptions, locate: Locate) -> Roles:
    """Return the parameters of a table: as named in the options, else guessed."""
    found = Roles(keep_constant=options.keep_constant)
    if options.named:
        _assign_named(frame, options, locate, found)
    else:
        _assign_guessed(frame, options, locate, found)
    return found


def guess_batch(names: Sequence[str]) -> tuple[Batch | None, list[str]]:
    """Return which batch the columns of these names hold, with a note."""
    batches: tuple[tuple[Batch, str], ...] = (
        ("global_batch", "the batch of all devices together"),
        ("device_batch", "the batch of one device"),
    )
    for batch, words in batches:
        matching = [name for name in names if batch_of(name) == batch]
        if matching:
            return batch, [f"`{matching[0]}` is taken as {words}."]
    return None, []


def note_unclear_batch(names: Sequence[str], *, is_used: bool) -> list[str]:
    """Return a note where a batch may be that of one device or of all.

    Parameters
    ----------
    names
        The columns.
    is_used
        Whether the times were made from that batch.
    """
    unclear = [name for name in names if batch_of(name) == "unknown"]
    if not unclear or not any(counts_what(name) == "devices" for name in names):
        return []
    purpose = "to say which" if is_used else "to learn how well the devices scale"
    taken = ", and is taken as that of all" if is_used else ""
    return [
        f"`{unclear[0]}` may be a batch of one device or of all together{taken}: rename it "
        f"`device_batch` or `global_batch` {purpose}."
    ]


def _assign_named(frame: pd.DataFrame, options: ReadOptions, locate: Locate, found: Roles) -> None:
    for name in map(str, frame.columns):
        if name in options.named:
            role: Role = "extrinsic" if name in (options.extrinsic or ()) else "intrinsic"
            values = _read_named(frame[name], role, options, locate)
            found.add(name, role, values)
            if values.dtype == object:
                found.notes += note_blanks(name, frame[name])
        elif name not in (options.time, options.throughput, options.group, *RESERVED):
            found.notes.append(f"`{name}` is not named in a role and was ignored.")


def _read_named(
    column: Column, role: Role, options: ReadOptions, locate: Locate
) -> Numbers | Levels:
    is_label = column.name in options.categorical or not is_numeric(column)
    if role == "extrinsic" and is_label:
        raise InvalidInputError(
            f"An extrinsic column must be numeric, but `{column.name}` is "
            f"{'listed in `categorical`' if column.name in options.categorical else 'text'}."
        )
    if is_label:
        return read_levels(column, locate, may_be_blank=is_often_blank(column))
    return read_numbers(column, locate)


def _assign_guessed(
    frame: pd.DataFrame, options: ReadOptions, locate: Locate, found: Roles
) -> None:
    texts = []
    set_aside = (options.time, options.throughput, options.group, *RESERVED)
    for name in (str(column) for column in frame.columns if column not in set_aside):
        column = frame[name]
        reason = None if name in options.categorical else reason_aside(column)
        if reason:
            found.notes.append(f"`{name}` {reason}.")
            found.constant.append(name)
        elif _is_quantity(name, column, options):
            values = read_numbers(column, locate)
            _refuse_no_count(name, values, locate)
            _add_guessed_number(name, values, found)
        else:
            may_be_blank = name not in options.categorical or is_often_blank(column)
            found.add(name, "intrinsic", read_levels(column, locate, may_be_blank=may_be_blank))
            found.notes += note_blanks(name, column)
            is_text = name in found.columns and name not in options.categorical
            texts += [name] if is_text else []
    found.notes += _note_texts(texts, found)
    guessed = [n for n, role in found.roles.items() if role == "intrinsic" and n not in texts]
    if guessed:
        found.notes.append(f"Taken as intrinsic: {', '.join(f'`{n}`' for n in guessed)}.")


def _is_quantity(name: str, column: Column, options: ReadOptions) -> bool:
    if name in options.categorical or not is_numeric(column):
        return False
    has_few = column.nunique() <= _MOST_SWITCH_VALUES and counts_what(name) is None
    return not (has_few and is_often_blank(column))


def _add_guessed_number(name: str, values: Numbers, found: Roles) -> None:
    counted = counts_what(name)
    n_values = len(pd.unique(values))
    if n_values > 1 and _is_switch(values, n_values, counts=counted is not None):
        kind = f"{n_values} values" + (", zero among them," if (values == 0).any() else "")
        found.notes.append(f"`{name}` has {kind} and is taken as categorical.")
        found.add(name, "intrinsic", _as_levels(values))
        return
    found.add(name, "extrinsic" if counted else "intrinsic", values)
    if counted and name in found.columns:
        words = _COUNT_WORDS[counted]
        found.notes.append(f"`{name}` is taken as extrinsic: by its name it is {words}.")


def _refuse_no_count(name: str, values: Numbers, locate: Locate) -> None:
    """Refuse a number of devices or a batch that is not positive; it is no switch."""
    bad = values <= 0
    if not bad.any() or bad.all() or not (batch_of(name) or counts_devices_plainly(name)):
        return
    row = int(np.argmax(bad))
    what = "is a batch" if batch_of(name) else "counts devices or nodes"
    raise InvalidInputError(
        f"`{name} > 0` must hold, since by its name it {what}, but {locate(row)} has "
        f"{values[row]:g}; correct the row or leave it out, or list `{name}` in `categorical` if "
        "its values are labels."
    )


def _is_switch(values: Numbers, n_values: int, *, counts: bool) -> bool:
    if counts and bool((values > 0).all()):
        return False
    has_few_with_zero = n_values <= _MOST_SWITCH_VALUES and bool((values == 0).any())
    return n_values == 2 or has_few_with_zero


def _as_levels(values: Numbers) -> Levels:
    codes, distinct = pd.factorize(values)
    names: npt.NDArray[np.object_] = np.array([level_name(x) for x in distinct], dtype=object)
    return names[codes]


def _note_texts(names: Sequence[str], found: Roles) -> list[str]:
    if not names:
        return []
    parts = [f"`{name}` ({len(pd.unique(found.columns[name]))} levels)" for name in names]
    return [f"Text is taken as categorical: {', '.join(parts)}."]
