"""Waiting for the slowest of N workers, for more workers than were measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators._phases import PhaseTable

_MAX_ATOMS = 20_000  # of the distribution of a new worker; beyond it, its quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTimes:
    """Own work of workers in steps, taken apart: common to a step, of a worker, random.

    Parameters
    ----------
    own_s
        Own work, steps by workers.
    common_s
        What a step costs all workers: the mean over workers, drawn towards the mean of the run
        as far as it is explained by chance (best linear prediction).
    new_s
        Sorted values that a worker not yet measured may add to the common time: a measured
        worker's lasting excess plus any random residual.
    """

    own_s: np.ndarray
    common_s: np.ndarray
    new_s: np.ndarray

    @classmethod
    def from_own(cls, own_s: np.ndarray) -> WorkerTimes:
        """Take the measured own work apart."""
        lasting = own_s.mean(axis=0) - own_s.mean()
        random_sd, trust = _random_part(own_s - lasting)
        step_means = own_s.mean(axis=1)
        common = own_s.mean() + trust * (step_means - own_s.mean())
        residuals = np.sort((own_s - lasting - common[:, np.newaxis]).ravel())
        spread = float(residuals.std())
        # taking out the mean of few workers takes out some of their randomness: put it back
        residuals = residuals * (random_sd / spread if spread > 0 else 1.0)
        return cls(own_s=own_s, common_s=common, new_s=_sums(lasting, residuals))

    def slowest_s(self, n_workers: int) -> float:
        """Return the expected own work of the slowest of `n_workers`."""
        n_measured = self.own_s.shape[1]
        if n_workers <= n_measured:
            return _largest_of_some(self.own_s, n_workers)
        return self._largest_with_new(n_workers - n_measured)

    def _largest_with_new(self, n_new: int) -> float:
        """Return E[max(measured workers, n_new more)], exact for the discrete distribution."""
        floor = np.sort(self.own_s.max(axis=1) - self.common_s)
        n = len(self.new_s)
        reached = (np.arange(n + 1) / n) ** n_new  # P(all new ones are among the first j)
        above = np.concatenate([np.cumsum((np.diff(reached) * self.new_s)[::-1])[::-1], [0.0]])
        j = np.searchsorted(self.new_s, floor, side="right")
        return float(np.mean(self.common_s) + np.mean(floor * reached[j] + above[j]))


def extrapolate_waiting(table: PhaseTable, n_workers: Sequence[int]) -> pd.DataFrame:
    """Return how long a step waits for the slowest of N workers.

    By order statistics of the measured own work. The measured workers stay as they are,
    step by step; further ones take a measured worker's lasting excess and a random residual.
    So the result is the measured one at the measured N and grows with N. No excess or residual
    beyond the measured ones is known: for many workers it is a lower estimate.

    Parameters
    ----------
    table
        A run, best on as many workers as there are.
    n_workers
        Numbers of workers N to ask for.

    Returns
    -------
    DataFrame
        ``n_workers``, ``own_s`` (mean worker), ``slowest_s``, ``waiting_s`` (their difference),
        ``lif`` (their ratio), ``is_measured`` (N is not beyond the run).
    """
    times = WorkerTimes.from_own(table.own_s())
    mean_s = float(times.own_s.mean())
    rows = []
    for n in n_workers:
        if n < 1:
            raise InvalidInputError(f"`n_workers` must be at least 1, but got {n}.")
        slowest_s = times.slowest_s(int(n))
        rows.append(
            {
                "n_workers": int(n),
                "own_s": mean_s,
                "slowest_s": slowest_s,
                "waiting_s": max(slowest_s - mean_s, 0.0),  # rounding may fall below
                "lif": slowest_s / mean_s if mean_s > 0 else 1.0,
                "is_measured": n <= table.n_workers,
            }
        )
    return pd.DataFrame(rows)


def _random_part(level_s: np.ndarray) -> tuple[float, float]:
    """Return the random spread of one worker, and how much of step means is common to all.

    Two-way layout without lasting differences: a step's mean varies by what is common and by
    chance / K. One worker alone, or one step, shows nothing common.
    """
    n_steps, n_measured = level_s.shape
    if n_measured == 1 or n_steps == 1:
        return float(level_s.std()), 0.0
    step_means = level_s.mean(axis=1)
    rest = level_s - step_means[:, np.newaxis]
    variance = float((rest**2).sum()) / ((n_measured - 1) * (n_steps - 1))
    of_means = float(step_means.var(ddof=1))
    trust = max(0.0, 1 - variance / n_measured / of_means) if of_means > 0 else 0.0
    return float(np.sqrt(variance)), trust


def _sums(lasting: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    n_residuals = max(1, _MAX_ATOMS // len(lasting))
    if len(residuals) > n_residuals:
        levels = (np.arange(n_residuals) + 0.5) / n_residuals
        residuals = np.quantile(residuals, levels)
    return np.sort((lasting[:, np.newaxis] + residuals).ravel())


def _largest_of_some(own_s: np.ndarray, n: int) -> float:
    """Return the mean over steps and over all choices of n workers of the slowest chosen one."""
    k = own_s.shape[1]
    # P(the j-th smallest is the largest of n chosen) = C(j - 1, n - 1) / C(k, n), by recurrence
    weights = np.zeros(k)
    weights[k - 1] = n / k
    for j in range(k - 1, n - 1, -1):
        weights[j - 1] = weights[j] * (j - n + 1) / j
    return float((np.sort(own_s, axis=1) @ weights).mean())
