"""Numbers with commas between their thousands: 12,288,000."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from paceline.dataset._cells import Column, has_decimal_comma, is_grouped, parse_number


def join_thousands(
    frame: pd.DataFrame, labels: Sequence[str] = ()
) -> tuple[pd.DataFrame, list[str]]:
    """Return a table without commas in numbers where they can only separate thousands.

    Parameters
    ----------
    frame
        The table as it was read.
    labels
        Columns whose cells are names and stay as they are.
    """
    joined, notes = {}, []
    texts = [n for n in frame.columns if not pd.api.types.is_numeric_dtype(frame[n].dtype)]
    for name in (str(name) for name in texts if name not in labels):
        cell = _clear_cell(frame[name])
        if cell is not None:
            whole = frame[name].map(lambda text: str(text).replace(",", ""), na_action="ignore")
            joined[name] = pd.to_numeric(whole, errors="coerce")
            notes.append(f"`{name}` has commas between thousands, as {cell!r} shows.")
    return frame.assign(**joined), notes


def _clear_cell(column: Column) -> str | None:
    """Return a cell that shows that the commas of a column of numbers separate thousands."""
    cells = [str(cell).strip() for cell in column.dropna().unique()]
    with_comma = [cell for cell in cells if "," in cell]
    plain = [cell for cell in cells if "," not in cell]
    if not all(map(is_grouped, with_comma)) or any(parse_number(cell) is None for cell in plain):
        return None
    # One comma may mark decimals, as in 2,048, unless points do.
    has_point = any("." in cell for cell in cells)
    return next((cell for cell in with_comma if has_point or not has_decimal_comma(cell)), None)
