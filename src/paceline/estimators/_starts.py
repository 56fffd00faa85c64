"""Where the fast solver begins.

For given extrinsic powers q the times are linear in ``I_i^p`` for every p of a small
dictionary. Non-negative least squares over that dictionary therefore finds, without any
search, which powers each parameter asks for; their mean is the start.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr
from scipy.optimize import nnls

from paceline.estimators._columns import Array
from paceline.estimators._problem import Problem

_DICTIONARY = np.array([-3.0, -1.5, -0.7, -0.25, 0.25, 0.7, 1.5, 3.0])
# a floor C flattens the slopes seen in log t, so steeper ones are tried too
_STEEPNESS = (1.0, 1.5, 2.2, 3.2)


def propose_starts(problem: Problem, rng: np.random.Generator, n_random: int) -> list[Array]:
    """Return starting points, the most promising first."""
    slopes = _log_slopes(problem)
    starts = [_dictionary_start(problem, steep * slopes, _DICTIONARY) for steep in _STEEPNESS]
    for _ in range(n_random):
        q = slopes * rng.uniform(1.0, 3.5) + rng.normal(0.0, 0.1, len(slopes))
        starts.append(_dictionary_start(problem, q, _DICTIONARY * rng.uniform(0.6, 1.5)))
    return sorted(starts, key=problem.cost)


def _log_slopes(problem: Problem) -> Array:
    """Return the extrinsic powers of a plain power law, by least squares in the logs."""
    rows = problem.rows
    n_extrinsic = rows.log_extrinsic.shape[1]
    if not n_extrinsic:
        return np.empty(0)
    design = np.column_stack([rows.log_extrinsic, rows.log_terms, problem.one_hot])
    root = np.sqrt(problem.weights)[:, None]
    centred = root * (design - np.average(design, axis=0, weights=problem.weights))
    logs = np.log(problem.times)
    target = root[:, 0] * (logs - np.average(logs, weights=problem.weights))
    slopes: Array = np.linalg.lstsq(centred, target, rcond=1e-10)[0][:n_extrinsic]
    return slopes


def _dictionary_start(problem: Problem, q: Array, dictionary: Array) -> Array:
    a, p, levels, q_slice = problem.slices
    n_terms = problem.rows.log_terms.shape[1]
    centre = problem.rows.log_terms.mean(axis=0)
    amounts = _fit_amounts(problem, q, dictionary, centre)
    chosen = amounts[: n_terms * len(dictionary)].reshape(n_terms, len(dictionary))
    total = chosen.sum(axis=1)
    power = chosen @ dictionary / np.maximum(total, 1e-300)
    x = np.empty(len(problem.lower))
    x[a] = total * np.exp(-centre * power)
    x[p] = power
    x[levels] = amounts[n_terms * len(dictionary) : -1]
    x[q_slice] = q
    x[-1] = amounts[-1]
    return np.clip(x, problem.lower, problem.upper)


def _fit_amounts(problem: Problem, q: Array, dictionary: Array, centre: Array) -> Array:
    """Return the non-negative amount of every dictionary column, level and the constant."""
    rows = problem.rows
    powers = np.exp((rows.log_terms - centre)[:, :, None] * dictionary)
    if rows.present is not None:
        powers *= rows.present[:, :, None]
    scaling = np.exp(rows.log_extrinsic @ q)[:, None]
    design = np.column_stack(
        [powers.reshape(len(rows), -1) * scaling, problem.one_hot * scaling, np.ones(len(rows))]
    )
    # weights of least squares that stand for absolute errors proportional to the time
    root = np.sqrt(problem.weights / problem.times)
    size = np.linalg.norm(design * root[:, None], axis=0)
    size[size == 0] = 1.0
    table = np.column_stack([design / size, problem.times]) * root[:, None]
    (triangle,) = qr(table, mode="r", check_finite=False)
    triangle = triangle[: table.shape[1]]
    return nnls(triangle[:, :-1], triangle[:, -1], maxiter=50 * table.shape[1])[0] / size
