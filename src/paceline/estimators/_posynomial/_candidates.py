"""Every path of expressions that is tried, and what unseen rows say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._folds import Fold
from paceline.estimators._posynomial._front import (
    POWER_STRENGTHS,
    FrontMember,
    Setting,
    held_out_logs,
    percentage_errors,
    standard_error,
)
from paceline.estimators._posynomial._problem import PosynomialProblem
from paceline.estimators._posynomial._rows import Layout
from paceline.estimators._posynomial._simplify import express
from paceline.estimators._posynomial._solve import Solution, grow_path

_CAUTIOUS = Setting(strength=POWER_STRENGTHS[-1], owns_levels=False)


class Candidates:
    """Paths grown with several settings on the same rows.

    Parameters
    ----------
    problem
        The rows to choose with.
    layout
        What their columns are.
    labels
        Rows of one label count as one draw.
    folds
        Rows to fit and rows to test; none when there are too few rows.
    n_terms
        Most terms.
    random_state
        Seed of the starts.
    """

    def __init__(
        self,
        problem: PosynomialProblem,
        layout: Layout,
        labels: Any,
        folds: Sequence[Fold],
        n_terms: int,
        random_state: int,
    ) -> None:
        self._problem, self._layout, self._labels = problem, layout, labels
        self._paths: dict[Setting, list[Solution]] = {}
        self._logs: dict[Setting, Array] = {}
        for setting in _settings(problem) if folds else (_CAUTIOUS,):
            own = self.problem_of(setting)
            self._paths[setting] = grow_path(own, n_terms, random_state)
            logs = np.full((n_terms, len(problem.rows)), np.nan)
            self._logs[setting] = (
                held_out_logs(own, folds, n_terms, random_state) if folds else logs
            )
        self._choices = self._best_settings(n_terms)
        self.members = tuple(self._member(setting, k) for setting, k in self._choices)

    def problem_of(self, setting: Setting) -> PosynomialProblem:
        """Return the problem with the strengths of a setting."""
        return replace(self._problem, strengths=setting.strengths)

    def setting(self, place: int) -> Setting:
        """Return how a member was grown."""
        return self._choices[place][0]

    def solution(self, place: int) -> Solution:
        """Return the constants of a member."""
        setting, k = self._choices[place]
        return self._paths[setting][k]

    def held_out_logs(self, place: int) -> Array:
        """Return the log predictions of every row by a path grown without it."""
        setting, k = self._choices[place]
        return self._logs[setting][k]

    def _best_settings(self, n_terms: int) -> list[tuple[Setting, int]]:
        """Return for every number of terms, and both ways with levels, the best strength."""
        best: dict[tuple[int, bool], tuple[float, Setting]] = {}
        for setting, logs in self._logs.items():
            for k in range(n_terms):
                if k == 0 and setting.owns_levels:
                    continue  # the levels of one term are its own anyway
                error = float(percentage_errors(logs[k], self._problem.target).mean())
                key = (k, setting.owns_levels)
                if key not in best or error < best[key][0]:
                    best[key] = (error, setting)
        found = [(setting, k) for (k, _), (_, setting) in best.items()]
        return sorted(found, key=lambda pair: self._n_constants(*pair))

    def _n_constants(self, setting: Setting, k: int) -> int:
        return express(self._paths[setting][k], self._layout).n_constants

    def _member(self, setting: Setting, k: int) -> FrontMember:
        errors = percentage_errors(self._logs[setting][k], self._problem.target)
        return FrontMember(
            n_terms=k + 1,
            owns_levels=setting.owns_levels,
            n_constants=self._n_constants(setting, k),
            error=float(errors.mean()),
            standard_error=standard_error(errors, self._labels),
            strength=setting.strength,
        )


def _settings(problem: PosynomialProblem) -> list[Setting]:
    ways = (False, True) if problem.rows.marks.shape[1] else (False,)
    return [Setting(strength=s, owns_levels=own) for own in ways for s in POWER_STRENGTHS]
