"""Expressions from one term up: how complex each is, and how well it predicts unseen rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._folds import Fold
from paceline.estimators._posynomial._problem import PosynomialProblem, log_sum
from paceline.estimators._posynomial._solve import Solution

_MAX_SCATTER = 1.0
CLOSE = 1.0  # standard errors
_RARE = 0.95  # quantile of the errors of the best expression: larger ones count as that


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMember:
    """One expression of the front.

    Parameters
    ----------
    n_terms
        Number of terms.
    n_constants
        Number of independent constants.
    error
        Mean absolute percentage error on rows that were held out; NaN when none were.
    standard_error
        Of that mean, counting rows that belong together as one.
    """

    n_terms: int
    n_constants: int
    error: float
    standard_error: float

    def to_dict(self) -> dict[str, Any]:
        """Return the member as plain data."""
        return {
            "n_terms": self.n_terms,
            "n_constants": self.n_constants,
            "error": None if np.isnan(self.error) else self.error,
            "standard_error": None if np.isnan(self.standard_error) else self.standard_error,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FrontMember:
        """Return the member that `to_dict` wrote."""
        error, spread = data["error"], data["standard_error"]
        return cls(
            n_terms=int(data["n_terms"]),
            n_constants=int(data["n_constants"]),
            error=float("nan") if error is None else float(error),
            standard_error=float("nan") if spread is None else float(spread),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """Complexity against error, and what was chosen.

    Parameters
    ----------
    members
        Fewest terms first.
    chosen
        Place of the default: the fewest terms that are as good as the best.
    most_accurate
        Place of the least held-out error.
    """

    members: tuple[FrontMember, ...]
    chosen: int
    most_accurate: int

    def to_dict(self) -> dict[str, Any]:
        """Return the front as plain data."""
        return {
            "members": [member.to_dict() for member in self.members],
            "chosen": self.chosen,
            "most_accurate": self.most_accurate,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Front:
        """Return the front that `to_dict` wrote."""
        members = tuple(FrontMember.from_dict(member) for member in data["members"])
        chosen, best = int(data["chosen"]), int(data["most_accurate"])
        if not (0 <= chosen < len(members) and 0 <= best < len(members)):
            raise ValueError("the front chooses a member that it does not have")
        return cls(members=members, chosen=chosen, most_accurate=best)


def fold_paths(
    problem: PosynomialProblem,
    folds: Sequence[Fold],
    grow: Callable[..., list[Solution]],
    first_start: int = 0,
) -> list[list[Solution]]:
    """Return paths grown without a fold, each from a start of its own."""
    return [grow(problem.take(train), start=first_start + i) for i, (train, _) in enumerate(folds)]


def held_out_logs(logs: Array, folds: Sequence[Fold]) -> Array:
    """Return of logs (folds, terms, rows) what the path says of each row that has not seen it."""
    own: Array = np.full(logs.shape[1:], np.nan)
    for part, (_, test) in zip(logs, folds, strict=True):
        own[:, test] = part[:, test]
    return own


def path_logs(problem: PosynomialProblem, path: Sequence[Solution]) -> Array:
    """Return the log predictions (terms, rows) of every solution."""
    return np.array([log_sum(problem.log_terms(s.constants, s.kinds)) for s in path])


def percentage_errors(logs: Array, target: Array) -> Array:
    """Return ``|predicted / measured - 1|`` of log predictions."""
    return np.abs(np.expm1(np.clip(logs - target, -50.0, 50.0)))


def lowering(logs: Array, target: Array) -> float:
    """Return what to take off log predictions for the least mean percentage error.

    Of times that scatter, the number with the least mean ``|predicted / measured - 1|`` is below
    their median: the median of the measured over the predicted, weighted by its inverse.
    """
    r = np.clip(logs - target, -_MAX_SCATTER, _MAX_SCATTER)
    order = np.argsort(r)
    weights = np.cumsum(np.exp(r[order]))
    return float(r[order][np.searchsorted(weights, 0.5 * weights[-1])])


def standard_error(errors: Array, groups: Any) -> float:
    """Return the standard error of the mean error; rows of one group count as one draw."""
    codes = np.unique(groups, return_inverse=True)[1].ravel()
    sums = np.bincount(codes, errors - errors.mean())
    n_groups = max(len(sums), 2)
    return float(np.sqrt((sums**2).sum() * n_groups / (n_groups - 1)) / len(errors))


def choose(
    members: Sequence[FrontMember],
    errors: Sequence[Array],
    groups: Any,
    max_constants: int,
    n_terms: int | None,
) -> tuple[int, int]:
    """Return the places of the default choice and of the least error, of those allowed.

    The best has the least mean error. Others must lie within its standard error, as it is shown,
    and be no worse row by row: what both find hard says nothing about which is better, so that
    standard error is of the mean difference. In it errors beyond what the best rarely exceeds
    count as that much, for a few rows that no expression foresees would drown the others.
    """
    means = np.array([m.error for m in members])
    if np.isnan(means).all():
        return 0, 0
    allowed = [
        i
        for i, m in enumerate(members)
        if (m.n_terms == n_terms if n_terms else m.n_constants <= max_constants or m.n_terms == 1)
    ]
    top = min(allowed, key=lambda i: means[i])
    counted = [np.minimum(e, np.quantile(errors[top], _RARE)) for e in errors]
    within = []
    for i in allowed:
        worse = counted[i] - counted[top]
        is_near = means[i] <= means[top] + CLOSE * members[top].standard_error
        if is_near and worse.mean() <= CLOSE * standard_error(worse, groups):
            within.append(i)
    return min(within, key=lambda i: (members[i].n_terms, members[i].n_constants)), top


def most_accurate(members: Sequence[FrontMember]) -> int:
    """Return the place of the least held-out error; the first when nothing was held out."""
    means = [float("inf") if np.isnan(m.error) else m.error for m in members]
    return int(np.argmin(means))
