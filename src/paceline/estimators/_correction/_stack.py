"""How much each of several predictions counts."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from paceline.estimators._columns import Array

_EVEN = 0.3  # of the weight is dealt evenly: held-out errors of few rows flatter the best of them


def stack_weights(logs: Array, target: Array) -> Array:
    """Return weights, not negative and summing to 1, of a formula and of its corrections.

    Minimised is the mean of a smoothed absolute error of the weighted mean; then a part of the
    weight that corrections have is dealt evenly among them.

    Parameters
    ----------
    logs
        Log predictions (formula and members, rows), each by fits that had not seen the row.
    target
        Logarithms of the measured times.
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
    share = float(weights[1:].sum())
    weights[1:] += _EVEN * (share / max(len(weights) - 1, 1) - weights[1:])
    weights[weights < 0.02] = 0.0  # a member that hardly counts is not worth keeping
    return np.asarray(weights / weights.sum())


def _softmax(z: Array) -> Array:
    weights = np.exp(z - z.max())
    return np.asarray(weights / weights.sum())
