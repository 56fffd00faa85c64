"""Which trials to draw from a space."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.space._parameter import Parameter

Trial = dict[str, float | int | str]

_Design = Callable[[Sequence[Parameter], int, np.random.Generator], list[Trial]]

# A stride near this share of the grid spreads any number of steps evenly (golden section).
_GOLDEN_SHARE = (math.sqrt(5) - 1) / 2

# A linear congruential step modulo 2^64 (Knuth, MMIX).
_HASH_FACTOR = 6364136223846793005
_HASH_STEP = 1442695040888963407


def sample(
    parameters: Sequence[Parameter], n: int | None, design: str, random_state: int
) -> list[Trial]:
    """Return `n` trials drawn by the named design."""
    if design not in _DESIGNS:
        raise UnknownNameError("design", design, _DESIGNS)
    if n is None and design == "grid":
        n = count_combinations(parameters)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InvalidInputError(f"`n` must be a positive whole number, but got {n!r}.")
    return _DESIGNS[design](parameters, int(n), np.random.default_rng(random_state))


def count_combinations(parameters: Sequence[Parameter]) -> int:
    """Return how many different trials the parameters allow."""
    return math.prod(len(parameter.values) for parameter in parameters)


def _draw_random(parameters: Sequence[Parameter], n: int, rng: np.random.Generator) -> list[Trial]:
    """Draw every value independently and uniformly."""
    columns = [rng.integers(len(parameter.values), size=n) for parameter in parameters]
    return _trials(parameters, np.transpose(columns).tolist())


def _draw_latin(parameters: Sequence[Parameter], n: int, rng: np.random.Generator) -> list[Trial]:
    """Draw a Latin hypercube: the counts of a parameter's values differ by at most 1."""
    columns = []
    for parameter in parameters:
        order = rng.permutation(len(parameter.values))  # which values get the one extra
        columns.append(rng.permutation(order[np.arange(n) % len(order)]))
    return _trials(parameters, np.transpose(columns).tolist())


def _draw_grid(parameters: Sequence[Parameter], n: int, rng: np.random.Generator) -> list[Trial]:
    """Draw the full grid, or `n` different points of it that no list of the grid is needed for."""
    size = count_combinations(parameters)
    radices = [len(parameter.values) for parameter in parameters]
    if n >= size:
        return _trials(parameters, [_digits(i, radices) for i in range(size)])
    start, key = (int(number) for number in rng.integers(2**62, size=2))
    stride = _coprime_stride(size)
    points = (_digits((start + i * stride) % size, radices) for i in range(n))
    return _trials(parameters, [_shuffle(point, radices, key) for point in points])


def _coprime_stride(size: int) -> int:
    """Return a stride that visits every point of the grid once before it comes back."""
    stride = max(1, round(size * _GOLDEN_SHARE))
    while math.gcd(stride, size) != 1:
        stride += 1
    return stride


def _digits(index: int, radices: Sequence[int]) -> list[int]:
    """Decode a position in the grid; the last parameter varies fastest."""
    digits = []
    for radix in reversed(radices):
        index, digit = divmod(index, radix)
        digits.append(digit)
    return digits[::-1]


def _shuffle(digits: Sequence[int], radices: Sequence[int], key: int) -> list[int]:
    """Send each point of the grid to another one, no two to the same.

    Every digit is shifted by a hash of the faster ones, which can be undone from the last
    digit on. Without it one stride could be in step with a parameter and skip its values.
    """
    shuffled = []
    for digit, radix in zip(reversed(digits), reversed(radices), strict=True):
        shuffled.append((digit + (key >> 17)) % radix)  # the low bits of such a hash are poor
        key = ((key ^ (shuffled[-1] + 1)) * _HASH_FACTOR + _HASH_STEP) % 2**64
    return shuffled[::-1]


def _trials(parameters: Sequence[Parameter], choices: Sequence[Sequence[int]]) -> list[Trial]:
    return [
        {p.name: p.values[choice] for p, choice in zip(parameters, row, strict=True)}
        for row in choices
    ]


_DESIGNS: dict[str, _Design] = {
    "random": _draw_random,
    "latin": _draw_latin,
    "grid": _draw_grid,
}
