"""What a design would have learned from a recorded dataset, had it chosen the trials."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError, PacelineWarning, UnknownNameError
from paceline.estimators import score
from paceline.measurement._adaptive import Coordinates, choose_next, fit_surrogate
from paceline.measurement._draw import BATCH_SHARE, FIRST_SHARE
from paceline.space import Parameter, Space

_DESIGNS = ("random", "adaptive")
_HELD_OUT_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How well a model predicts after so many trials of a design.

    Parameters
    ----------
    design
        Which design chose the trials.
    n_trials
        How many it chose.
    errors
        Mean absolute percentage error on held-out rows, one per seed, as a share.
    seconds
        Steps and overhead of the chosen trials, one sum per seed.
    """

    design: str
    n_trials: int
    errors: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def error(self) -> float:
        """Mean error over the seeds."""
        return float(np.mean(self.errors))

    @property
    def measuring_s(self) -> float:
        """Mean seconds of measuring over the seeds."""
        return float(np.mean(self.seconds))

    def __str__(self) -> str:
        return (
            f"{self.n_trials} {self.design} trials: error {self.error:.1%}, "
            f"{self.measuring_s:.1f} s of measuring"
        )


def replay(
    dataset: Dataset,
    design: str,
    n: int,
    seeds: Sequence[int] = tuple(range(10)),
    *,
    estimator: Any = None,
    n_steps: float = 10.0,
    overhead_s: float = 0.04,
) -> Replay:
    """Let a design choose trials of a recorded dataset, fit them, and predict the others.

    Parameters
    ----------
    dataset
        Many measured trials; a part, drawn by the seed, is held out to be predicted.
    design
        ``random`` or ``adaptive``.
    n
        Trials to choose.
    seeds
        One replay each.
    estimator
        What is fitted; None means the model whose uncertainty the design shrinks.
    n_steps, overhead_s
        A trial costs so many steps, and so many seconds beside them.

    Examples
    --------
    >>> replay(recorded, "adaptive", 130).error <= replay(recorded, "random", 200).error
    ... # doctest: +SKIP
    True
    """
    return replay_all(
        dataset,
        design,
        n,
        seeds,
        estimators={"": estimator},
        n_steps=n_steps,
        overhead_s=overhead_s,
    )[""]


def replay_all(
    dataset: Dataset,
    design: str,
    n: int,
    seeds: Sequence[int] = tuple(range(10)),
    *,
    estimators: Mapping[str, Any],
    n_steps: float = 10.0,
    overhead_s: float = 0.04,
) -> dict[str, Replay]:
    """Do as `replay` for several estimators, given by name: the same trials are fitted by each."""
    _check(dataset, design, n)
    costs_s = overhead_s + n_steps * dataset.y.to_numpy()
    errors: dict[str, list[float]] = {name: [] for name in estimators}
    seconds = []
    for seed in seeds:
        fit_rows, test_rows = _split(len(dataset), seed)
        chosen = fit_rows[:n]
        if design == "adaptive":
            chosen = _choose(dataset, fit_rows, n, n_steps, overhead_s)
        for name, estimator in estimators.items():
            errors[name].append(_error(dataset, chosen, test_rows, estimator))
        seconds.append(float(costs_s[chosen].sum()))
    return {
        name: Replay(design=design, n_trials=n, errors=tuple(shares), seconds=tuple(seconds))
        for name, shares in errors.items()
    }


def _check(dataset: Dataset, design: str, n: int) -> None:
    if design not in _DESIGNS:
        raise UnknownNameError("design", design, _DESIGNS)
    if n > (1 - _HELD_OUT_SHARE) * len(dataset):
        raise InvalidInputError(
            f"`n` must be at most {1 - _HELD_OUT_SHARE:.0%} of the {len(dataset)} rows, "
            f"but got {n}."
        )


def _split(n_rows: int, seed: int) -> tuple[Any, Any]:
    order = np.random.default_rng([seed, 21]).permutation(n_rows)
    n_test = round(_HELD_OUT_SHARE * n_rows)
    return order[n_test:], order[:n_test]


def _choose(dataset: Dataset, rows: Any, n: int, n_steps: float, overhead_s: float) -> Any:
    """Choose as a campaign does: a start, then batch by batch."""
    space, trials = _space(dataset), dataset.X.to_dict("records")
    times_s = dataset.y.to_numpy()
    chosen = list(rows[: max(12, round(FIRST_SHARE * n))])
    batch = max(1, round(BATCH_SHARE * n))
    while len(chosen) < n:
        left = [row for row in rows if row not in set(chosen)]
        picked = choose_next(
            space,
            [trials[row] for row in chosen],
            [float(times_s[row]) for row in chosen],
            [trials[row] for row in left],
            min(batch, n - len(chosen)),
            n_steps=n_steps,
            overhead_s=overhead_s,
        )
        chosen += [left[i] for i in picked]
    return np.array(chosen)


def _space(dataset: Dataset) -> Space:
    return Space(
        name="recorded",
        parameters=tuple(
            Parameter(
                name=str(name),
                role=dataset.roles[name],
                kind=dataset.kinds[name],
                values=tuple(sorted(dataset.X[name].unique().tolist())),
            )
            for name in dataset.X.columns
        ),
    )


def _error(dataset: Dataset, chosen: Any, test_rows: Any, estimator: Any) -> float:
    measured = dataset.y.iloc[test_rows]
    if estimator is None:
        return score(measured, _predict(dataset, chosen, test_rows)).mape
    model = clone(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PacelineWarning)
        model.fit(dataset.X.iloc[chosen], dataset.y.iloc[chosen])
    return score(measured, model.predict(dataset.X.iloc[test_rows])).mape


def _predict(dataset: Dataset, chosen: Any, test_rows: Any) -> Any:
    """Return what the model behind the adaptive design predicts."""
    trials = dataset.X.to_dict("records")
    coordinates = Coordinates(_space(dataset), trials)
    with threadpool_limits(1):
        model = fit_surrogate(
            coordinates.of([trials[row] for row in chosen]),
            np.log(dataset.y.to_numpy()[chosen]),
        )
        return np.exp(model.predict_log(coordinates.of([trials[row] for row in test_rows])))
