"""Which terms of the performance model normal form the points ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd

from paceline.estimators._columns import Array, Index
from paceline.estimators._extra_p_terms import (
    EXPONENTS,
    Factor,
    NormalForm,
    NormalTerm,
    Values,
    fit_terms,
    product,
    smape,
)
from paceline.estimators._power_law import PowerLawRegressor

MIN_POINTS = 5
_FLOOR = 1e-3  # of the least time
_MAX_COMBINED = 5  # parameters up to which all kinds of combinations are tried

Product = tuple[int, ...]  # which parameters are multiplied


def search_form(values: Values, times: Array, negative: bool | None) -> NormalForm:
    """Return the best normal form of points that all differ.

    Parameters
    ----------
    values, times
        Numeric parameters and times of the points.
    negative
        Whether exponents may be negative; None: where a parameter shrinks the times.
    """
    factors = []
    if len(times) >= MIN_POINTS:
        lines = ((name, _line_of(name, values, times)) for name in values)
        found = [find_factor(name, *line, negative) for name, line in lines]
        factors = [factor for factor in found if factor is not None]
    return _combine(factors, values, times)


def find_factor(name: str, x: Array, times: Array, negative: bool | None) -> Factor | None:
    """Return the best factor of one parameter, or None when a constant is as good.

    `x` must be distinct. Two values cannot be left out one by one: the time is then taken to
    be linear in the parameter or, where it shrinks, in its inverse.
    """
    shrinks = _shrinks(x, times)
    if len(x) < 3:
        sign = -1 if shrinks and negative is not False and x.all() else 1
        return _factor(name, x, Fraction(sign), 0) if len(x) == 2 else None
    best, least = None, smape(times, np.full(len(times), times.mean()))
    for factor in _candidates(name, x, shrinks if negative is None else negative):
        trial = fit_terms([factor.evaluate(x)], times)
        error = np.inf if trial is None else trial.smape(times)
        if error < least:
            best, least = factor, error
    return best


def _candidates(name: str, x: Array, negative: bool) -> Iterator[Factor]:
    """Yield the hypotheses; as in Extra-P, no logarithms where one could be 0 or negative."""
    has_logs = bool((x > 1).all() if negative else (x >= 1).all())
    signs = (1, -1) if negative and (x > 0).all() else (1,)
    for sign in signs:
        for power, log_power in EXPONENTS:
            if has_logs or not log_power:
                yield _factor(name, x, sign * power, sign * log_power)


def _factor(name: str, x: Array, power: Fraction, log_power: int) -> Factor:
    return Factor(name=name, power=power, log_power=log_power, smallest=float(x.min()))


def _shrinks(x: Array, times: Array) -> bool:
    place = np.log1p(x)
    return bool((place - place.mean()) @ np.log(times) < 0)


def _line_of(name: str, values: Values, times: Array) -> tuple[Array, Array]:
    """Return distinct values of a parameter and the times along them, the others held fixed.

    As in Extra-P, all of the longest lines are averaged (here: those over the same values).
    Where no line has five points, or all values of the parameter if it has fewer, the data as a
    whole are used, with what the other parameters do taken out by a power law.
    """
    x = values[name]
    others = [np.unique(v, return_inverse=True)[1] for n, v in values.items() if n != name]
    rows = np.column_stack([np.zeros(len(x), dtype=np.intp), *others])
    _, line, lengths = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    line = line.reshape(-1)
    if lengths.max() < min(MIN_POINTS, len(np.unique(x))):
        return _average_by(x, _without_others(name, values, times))
    kept = _commonest_line(x, line, np.flatnonzero(lengths == lengths.max()))
    return _average_by(x[kept], times[kept])


def _commonest_line(x: Array, line: Index, longest: Index) -> Index:
    """Return the rows of those lines that run over the same values."""
    order = np.lexsort((x, line))
    order = order[np.isin(line[order], longest)]
    runs = x[order].reshape(len(longest), -1)
    _, same, counts = np.unique(runs, axis=0, return_inverse=True, return_counts=True)
    chosen = longest[same.reshape(-1) == int(np.argmax(counts))]
    return np.flatnonzero(np.isin(line, chosen))


def _without_others(name: str, values: Values, times: Array) -> Array:
    frame = pd.DataFrame(dict(values))
    law = PowerLawRegressor().fit(frame, times)
    rest = law.predict(frame.assign(**{name: values[name][0]}))
    return times / rest * np.exp(np.log(rest).mean())


def _average_by(x: Array, times: Array) -> tuple[Array, Array]:
    distinct, group = np.unique(x, return_inverse=True)
    return distinct, np.bincount(group, weights=times) / np.bincount(group)


def _combine(factors: Sequence[Factor], values: Values, times: Array) -> NormalForm:
    """Return the best sum of products of the factors; a constant is to be beaten."""
    mean = float(times.mean())
    floor = _FLOOR * float(times.min())
    error = smape(times, np.full(len(times), mean))
    best = NormalForm(constant_s=mean, smape=error, floor_s=floor)
    for products in combinations_of(len(factors)):
        parts = [tuple(factors[i] for i in chosen) for chosen in products]
        trial = fit_terms([product(part, values) for part in parts], times)
        error = np.inf if trial is None else trial.smape(times)
        if trial is not None and error < best.smape:
            constant, *coefficients = trial.coefficients.tolist()
            terms = tuple(
                NormalTerm(coefficient_s=c, factors=part)
                for c, part in zip(coefficients, parts, strict=True)
            )
            best = NormalForm(constant_s=constant, terms=terms, smape=error, floor_s=floor)
    return best


def combinations_of(n: int) -> list[tuple[Product, ...]]:
    """Return sums of products that use each of `n` factors, as Extra-P combines two or three.

    The product of all, alone or with one other product, with two single factors, or with a
    product and the rest; the sum of all; a product and the rest, with one factor of it again.
    Beyond five factors only products of all, of all but one, and of one are tried.

    Examples
    --------
    >>> combinations_of(2)
    [((0, 1),), ((0,), (1,)), ((0, 1), (0,)), ((0, 1), (1,))]
    >>> len(combinations_of(3))
    23
    """
    if n == 0:
        return []
    whole, singles = tuple(range(n)), tuple((i,) for i in range(n))
    sizes = range(1, n) if n <= _MAX_COMBINED else (1, n - 1)
    parts = [part for size in sizes for part in combinations(whole, size)]
    found = [(whole,), singles, *((whole, part) for part in parts)]
    if n > 2:
        found += [(whole, *pair) for pair in combinations(singles, 2)]
    for part in (part for part in parts if len(part) > 1):
        split = (part, *(single for single in singles if single[0] not in part))
        found += [split, (whole, *split), *((*split, (i,)) for i in part)]
    return list(dict.fromkeys(found))
