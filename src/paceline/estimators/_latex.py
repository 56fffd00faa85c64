"""Names, numbers and powers in LaTeX."""

from __future__ import annotations

import re

from paceline.units import format_number


def latex_number(value: float, digits: int) -> str:
    r"""Return a number, its power of ten written out.

    Examples
    --------
    >>> latex_number(3.2e-07, 4)
    '3.2 \\times 10^{-7}'
    """
    mantissa, _, exponent = format_number(value, digits).partition("e")
    return rf"{mantissa} \times 10^{{{int(exponent)}}}" if exponent else mantissa


def latex_power(name: str, power: float, digits: int) -> str:
    r"""Return a parameter to a power.

    Examples
    --------
    >>> latex_power("n_gpus", -0.5, 4)
    '\\mathrm{n\\_gpus}^{-0.5}'
    """
    if power == 1:
        return latex_name(name)
    return f"{latex_name(name)}^{{{format_number(power, digits)}}}"


def latex_cases(values: dict[str, float], digits: int) -> str:
    """Return a number for every level."""
    cases = r" \\ ".join(
        rf"{latex_number(value, digits)} & \text{{{latex_text(level)}}}"
        for level, value in values.items()
    )
    return rf"\begin{{cases}} {cases} \end{{cases}}"


def latex_name(name: str) -> str:
    """Return the name of a parameter, upright."""
    return rf"\mathrm{{{latex_text(name)}}}"


def latex_text(text: str) -> str:
    """Return text with everything that LaTeX would read as a command made harmless."""
    special = {"\\": r"\backslash{}", "~": r"\sim{}", "^": r"\hat{}"}
    return re.sub(r"[\\~^&%$#_{}]", lambda m: special.get(m[0], "\\" + m[0]), text)
