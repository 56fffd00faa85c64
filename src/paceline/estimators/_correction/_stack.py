"""How much each of several predictions counts."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from paceline.estimators._columns import Array

_N_DOUBTED = 160.0  # draws by which each member's own error counts as much as the best mixture
_SHARPNESS = 4.0
_MAX_SCATTER = 3.0  # in logarithms: no single row decides
_SMALL = 0.01  # errors below a percent count by their square
_LOWERINGS = ((-1.0, 1.0), (0.0, 2.0))


def stack_weights(logs: Array, target: Array, n_draws: float) -> Array:
    """Return weights, not negative and summing to 1, of a formula and of its corrections.

    Minimised is the mean of a smoothed absolute error of the weighted mean. Of few independent
    draws that flatters the best member, so the fewer there are, the more the weights are drawn
    to the inverse of every member's error, raised to a power: a bad member stays out.

    Parameters
    ----------
    logs
        Log predictions (formula and members, rows), each by fits that had not seen the row.
    target
        Logarithms of the measured times.
    n_draws
        Number of independent rows, or of groups of rows.
    """
    errors = logs - target
    smoothing = 0.5 * float(np.median(np.abs(errors).min(axis=0))) + 1e-4

    def cost(z: Array) -> tuple[float, Array]:
        weights = _softmax(z)
        r = weights @ errors
        size = np.hypot(r, smoothing)
        slope = errors @ (r / size) / len(target)
        return float(size.mean()), weights * (slope - weights @ slope)

    found = minimize(cost, np.zeros(len(logs)), jac=True, method="L-BFGS-B")
    weights = _softmax(found.x)
    weights += (1.0 - trust(n_draws)) * (_by_error(errors) - weights)
    weights[weights < 0.02] = 0.0  # a member that hardly counts is not worth keeping
    return np.asarray(weights / weights.sum())


def spread(logs: Array, weights: Array) -> Array:
    """Return how far apart weighted predictions of every row are: their standard deviation."""
    middle = weights @ logs / weights.sum()
    return np.asarray(np.sqrt(weights @ (logs - middle) ** 2 / weights.sum()))


def lowerings(logs: Array, weights: Array, target: Array) -> tuple[float, float]:
    """Return what to take off weighted log predictions, and more of it per spread.

    Of times that scatter, the number with the least mean ``|predicted / measured - 1|`` is below
    their median, and times scatter more where predictions of them disagree.
    """
    middle, apart = weights @ logs, spread(logs, weights)

    def cost(lower: Array) -> tuple[float, Array]:
        r = np.clip(middle - lower[0] - lower[1] * apart - target, -_MAX_SCATTER, _MAX_SCATTER)
        error = np.expm1(r)
        size = np.hypot(error, _SMALL)
        slope = -(error / size) * (1.0 + error) / len(target)
        return float(size.mean()), np.array([slope.sum(), slope @ apart])

    found = minimize(cost, np.zeros(2), jac=True, method="L-BFGS-B", bounds=_LOWERINGS)
    return float(found.x[0]), float(found.x[1])


def trust(n_draws: float) -> float:
    """Return how far what so many draws seem to say is followed, from 0 to 1."""
    return n_draws / (_N_DOUBTED + n_draws)


def _by_error(errors: Array) -> Array:
    weights = (np.abs(errors).mean(axis=1) + 1e-9) ** -_SHARPNESS
    return np.asarray(weights / weights.sum())


def _softmax(z: Array) -> Array:
    weights = np.exp(z - z.max())
    return np.asarray(weights / weights.sum())
