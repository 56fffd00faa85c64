"""How much each of several predictions counts."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from paceline.estimators._columns import Array

_N_DOUBTED = 160.0  # draws by which each member's own error counts as much as the best mixture
_SHARPNESS = 4.0


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


def trust(n_draws: float) -> float:
    """Return how far what so many draws seem to say is followed, from 0 to 1."""
    return n_draws / (_N_DOUBTED + n_draws)


def _by_error(errors: Array) -> Array:
    weights = (np.abs(errors).mean(axis=1) + 1e-9) ** -_SHARPNESS
    return np.asarray(weights / weights.sum())


def _softmax(z: Array) -> Array:
    weights = np.exp(z - z.max())
    return np.asarray(weights / weights.sum())
