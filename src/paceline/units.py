"""Units: seconds inside, readable units at the edges."""

from __future__ import annotations

import math

from paceline.errors import UnknownNameError

SECONDS_PER_UNIT = {"s": 1.0, "ms": 1e-3, "us": 1e-6}

_SCALES = (
    (86400.0, "d"),
    (3600.0, "h"),
    (60.0, "min"),
    (1.0, "s"),
    (1e-3, "ms"),
    (1e-6, "us"),
    (1e-9, "ns"),
)


def seconds_per(unit: str) -> float:
    """Return how many seconds one `unit` of time is.

    Examples
    --------
    >>> seconds_per("ms")
    0.001
    """
    if unit not in SECONDS_PER_UNIT:
        raise UnknownNameError("time unit", unit, SECONDS_PER_UNIT)
    return SECONDS_PER_UNIT[unit]


def format_seconds(seconds: float, digits: int = 3) -> str:
    """Return a duration in the unit that a person would choose.

    Examples
    --------
    >>> format_seconds(0.0034)
    '3.4 ms'
    >>> format_seconds(7200)
    '2 h'
    """
    if not math.isfinite(seconds) or seconds == 0:
        return f"{seconds:.{digits}g} s"
    size = abs(float(f"{seconds:.{digits - 1}e}"))  # rounded first: 0.99999 s is 1 s, not 1000 ms
    scale, name = next((s for s in _SCALES if size >= s[0]), _SCALES[-1])
    return f"{format_number(seconds / scale, digits)} {name}"


def format_number(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, without needless exponents.

    Examples
    --------
    >>> format_number(12345.6), format_number(0.000012345)
    ('12300', '1.23e-05')
    """
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    if 1e-4 <= abs(value) < 1e6:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        text = f"{round(value, digits - 1 - math.floor(math.log10(abs(value)))):.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    shown = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{shown}e{exponent}"


def format_percent(share: float, digits: int = 2) -> str:
    """Return a share as a percentage.

    Examples
    --------
    >>> format_percent(0.0413)
    '4.1 %'
    """
    return f"{format_number(100 * share, digits)} %"


def format_count(n: int, noun: str) -> str:
    """Return a number of things with their name.

    Examples
    --------
    >>> format_count(1, "device"), format_count(8, "device")
    ('1 device', '8 devices')
    """
    return f"{n} {noun}{'' if n == 1 else 's'}"
