"""How much each of several predictions counts."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from paceline.estimators._columns import Array


def stack_weights(logs: Array, target: Array) -> Array:
    """Return weights, not negative and summing to 1, of several held-out log predictions.

    Minimised is the mean of a smoothed absolute error of the weighted mean.

    Parameters
    ----------
    logs
        Log predictions (members, rows), each row predicted by members that had not seen it.
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
    weights[weights < 0.02] = 0.0  # a member that hardly counts is not worth keeping
    return np.asarray(weights / weights.sum())


def _softmax(z: Array) -> Array:
    weights = np.exp(z - z.max())
    return np.asarray(weights / weights.sum())
