"""The best parameters of a space, as a fitted model alone can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paceline.errors import InfeasibleError, InvalidInputError, UnknownNameError
from paceline.planners._task import OBJECTIVES
from paceline.space import Parameter, Space
from paceline.units import format_seconds

if TYPE_CHECKING:
    from paceline.estimators import FitResult

Array = NDArray[np.float64]
PARAMETERS_SCHEMA = "paceline/parameters/1"
MOST_COMBINATIONS = 200_000  # looked at one by one; beyond, drawn and then improved
_DEVICES = ("n_devices", "n_gpus", "n_workers", "n_nodes")


@dataclass(frozen=True, kw_only=True)
class BestParameters:
    """The best point of a space.

    Parameters
    ----------
    values
        Of every parameter of the model.
    predicted_s, lower_s, upper_s
        Time there, in the model's own terms, with its 90 % interval.
    time_per
        What that time is of.
    per_sample_s
        The same by sample, which is what was made small; None where the batch is not known.
    n_combinations, is_exhaustive
        How many points were looked at, and whether these were all.
    runners_up
        The next points, with how much longer each takes.
    notes
        Bounds that bind, values left out, parameters filled in.
    """

    values: Mapping[str, Any]
    predicted_s: float
    lower_s: float
    upper_s: float
    time_per: str
    per_sample_s: float | None
    n_combinations: int
    is_exhaustive: bool
    objective: str
    runners_up: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        interval = [None if np.isnan(x) else x for x in (self.lower_s, self.upper_s)]
        return {
            "schema": PARAMETERS_SCHEMA,
            "values": dict(self.values),
            "objective": self.objective,
            "predicted_s": self.predicted_s,
            "lower_s": interval[0],
            "upper_s": interval[1],
            "time_per": self.time_per,
            "per_sample_s": self.per_sample_s,
            "n_combinations": self.n_combinations,
            "is_exhaustive": self.is_exhaustive,
            "runners_up": [dict(other) for other in self.runners_up],
            "notes": list(self.notes),
        }


def best_parameters(
    fit: FitResult,
    space: Space,
    *,
    objective: str = "fastest",
    deadline_s: float | None = None,
    n_samples: int | None = None,
    fixed: Mapping[str, Any] | None = None,
    random_state: int = 0,
) -> BestParameters:
    """Return the values of a space at which a model predicts the best, within what was measured.

    A step of more samples takes longer and does more: where the batch is known, time by sample is
    compared. ``cheapest`` multiplies it by the number of devices, ``fewest`` takes the fewest
    devices whose epoch is over by the deadline.

    Parameters
    ----------
    fit
        A fitted model.
    space
        Values to choose from; parameters of the model that it does not name keep their typical
        value.
    objective, deadline_s, n_samples
        As `search_plans` takes them.
    fixed
        Values that stay.
    random_state
        Of draws, where there are too many combinations to look at all.

    Raises
    ------
    UnknownNameError
        When the space or `fixed` names what the model does not know, or the objective is none.
    InvalidInputError
        When nothing of the space was measured.
    InfeasibleError
        When no point meets the deadline.
    """
    if objective not in OBJECTIVES:
        raise UnknownNameError("objective", objective, OBJECTIVES)
    search = _Search(fit, space, objective, deadline_s, n_samples, dict(fixed or {}))
    return search.best(random_state)


class _Search:
    """Points of a space and what a model makes of them."""

    def __init__(
        self,
        fit: FitResult,
        space: Space,
        objective: str,
        deadline_s: float | None,
        n_samples: int | None,
        fixed: dict[str, Any],
    ) -> None:
        self.fit, self.objective, self.fixed = fit, objective, fixed
        self.deadline_s, self.n_samples = deadline_s, n_samples
        self.notes: list[str] = []
        for name in (*space.names, *fixed):
            if name not in fit.measured.names:
                raise UnknownNameError("parameter of the model", name, fit.measured.names)
        self.choices = {p.name: self._measured(p) for p in space.parameters if p.name not in fixed}
        self.devices = next((n for n in _DEVICES if n in fit.measured.names), None)
        if objective != "fastest" and self.devices is None:
            raise InvalidInputError(
                f"The objective {objective!r} needs a number of devices, but the model has none "
                f"of {', '.join(_DEVICES)}."
            )
        self._check_deadline()

    def _check_deadline(self) -> None:
        if self.objective == "fewest" and self.deadline_s is None:
            raise InvalidInputError("The objective 'fewest' needs a deadline.")
        per_epoch = self.fit.basis.time_per == "epoch"
        if self.deadline_s is not None and self.n_samples is None and not per_epoch:
            raise InvalidInputError(
                "A deadline is of an epoch, and needs to know its samples. Try: --samples 50000"
            )

    def _measured(self, parameter: Parameter) -> tuple[Any, ...]:
        """Return the values of a parameter that were measured, or lie between such."""
        name, measured = parameter.name, self.fit.measured
        if name in measured.levels:
            inside = tuple(v for v in parameter.values if str(v) in measured.levels[name])
        else:
            low, high = measured.ranges[name]
            inside = tuple(v for v in parameter.values if low <= float(v) <= high)
        left = [str(v) for v in parameter.values if v not in inside]
        if not inside:
            raise InvalidInputError(
                f"The space must have a value of {name!r} within what was measured "
                f"({measured.describe(name)}), but has {', '.join(left)}."
            )
        if left:
            self.notes.append(f"{name} {', '.join(left)} left out: {measured.describe(name)}.")
        return inside

    def best(self, random_state: int) -> BestParameters:
        """Look at all points, or at many and improve the best."""
        n_all = int(np.prod([float(len(v)) for v in self.choices.values()]))
        is_small = n_all <= MOST_COMBINATIONS
        points = self._grid() if is_small else self._drawn(random_state)
        rows = self._rows(points)
        if not is_small:
            rows = self._improved(rows)
        values, predicted = self._score(rows)
        order = np.argsort(values, kind="stable")
        self._require(rows, predicted, int(order[0]))
        return self._described(rows, values, predicted, order, is_small)

    def _grid(self) -> pd.DataFrame:
        index = pd.MultiIndex.from_product(
            list(self.choices.values()) or [(0,)], names=list(self.choices) or ["_"]
        )
        return index.to_frame(index=False)[list(self.choices)]

    def _drawn(self, random_state: int) -> pd.DataFrame:
        rng = np.random.default_rng(random_state)
        return pd.DataFrame(
            {
                n: np.array(v, dtype=object)[rng.integers(len(v), size=MOST_COMBINATIONS // 10)]
                for n, v in self.choices.items()
            }
        )

    def _improved(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Change one parameter at a time of the best twenty until nothing helps."""
        values, _ = self._score(rows)
        best = rows.iloc[np.argsort(values, kind="stable")[:20]]
        for _ in range(20):
            tried = [best]
            for name, choices in self.choices.items():
                for value in choices:
                    tried.append(best.assign(**{name: value}))
            together = pd.concat(tried, ignore_index=True).drop_duplicates(ignore_index=True)
            scored, _ = self._score(together)
            found = together.iloc[np.argsort(scored, kind="stable")[:20]]
            if self._score(found)[0][0] >= self._score(best)[0][0]:
                return pd.concat([best, rows], ignore_index=True)
            best = found
        return pd.concat([best, rows], ignore_index=True)

    def _rows(self, points: pd.DataFrame) -> pd.DataFrame:
        """Return whole rows of the model: chosen, fixed, and typical values."""
        typical = self.fit.measured.typical()
        filled = {n: v for n, v in typical.items() if n not in points and n not in self.fixed}
        if filled:
            words = ", ".join(
                f"{n}={v:g}" if not isinstance(v, str) else f"{n}={v}" for n, v in filled.items()
            )
            self.notes.append(f"Not in the space, at their typical value: {words}.")
        n = max(len(points), 1)
        more = pd.DataFrame({k: [v] * n for k, v in {**filled, **self.fixed}.items()})
        return pd.concat([points.reset_index(drop=True), more], axis=1)

    def _score(self, rows: pd.DataFrame) -> tuple[Array, pd.DataFrame]:
        """Return what is to be least, and the predictions."""
        predicted = self.fit.predict(rows)
        each = self._per_sample(rows, predicted["predicted_s"].to_numpy(dtype=float))
        n = rows[self.devices].to_numpy(dtype=float) if self.devices else np.ones(len(rows))
        values = {"fastest": each, "cheapest": each * n, "fewest": n + each / (1 + each)}
        late = self._late(each)
        return np.where(late > 0, 1e12 * (1 + each), values[self.objective]), predicted

    def _per_sample(self, rows: pd.DataFrame, time_s: Array) -> Array:
        """Return the time by sample where that is known, else the time as it is."""
        batch = self._batch(rows)
        if self.fit.basis.time_per in ("epoch", "sample") or batch is None:
            return time_s
        return np.asarray(time_s / batch)

    def _batch(self, rows: pd.DataFrame) -> Array | None:
        if "global_batch" in rows:
            return rows["global_batch"].to_numpy(dtype=float)
        if "device_batch" in rows:
            n = rows[self.devices].to_numpy(dtype=float) if self.devices else 1.0
            return np.asarray(rows["device_batch"].to_numpy(dtype=float) * n)
        return None

    def _late(self, each: Array) -> Array:
        if self.deadline_s is None:
            return np.full(each.shape, -np.inf)
        scale = 1.0 if self.fit.basis.time_per == "epoch" else float(self.n_samples or 1)
        return each * scale - self.deadline_s

    def _require(self, rows: pd.DataFrame, predicted: pd.DataFrame, best: int) -> None:
        each = self._per_sample(rows, predicted["predicted_s"].to_numpy(dtype=float))
        late = self._late(each)
        if late[best] > 0:
            fastest_s = float(late.min()) + (self.deadline_s or 0.0)
            raise InfeasibleError(
                f"An epoch must take at most {format_seconds(self.deadline_s or 0.0)}, but the "
                f"fastest of {len(rows)} points takes {format_seconds(fastest_s)}."
            )

    def _described(
        self,
        rows: pd.DataFrame,
        values: Array,
        predicted: pd.DataFrame,
        order: NDArray[np.int64],
        is_small: bool,
    ) -> BestParameters:
        top = int(order[0])
        point = {str(n): _plain(v) for n, v in rows.iloc[top].items()}
        times = predicted.iloc[top]
        time_s = float(times["predicted_s"])
        batch = self._batch(rows)
        per_sample = None
        if batch is not None and self.fit.basis.time_per == "step":
            per_sample = time_s / float(batch[top])
        self.notes += self._binding(point)
        return BestParameters(
            values=point,
            predicted_s=time_s,
            lower_s=float(times["lower_s"]),
            upper_s=float(times["upper_s"]),
            time_per=str(self.fit.basis.time_per or ""),
            per_sample_s=per_sample,
            n_combinations=len(rows),
            is_exhaustive=is_small,
            objective=self.objective,
            runners_up=tuple(
                {
                    **{n: _plain(rows[n].iloc[i]) for n in self.choices},
                    "predicted_s": float(predicted["predicted_s"].iloc[i]),
                    "behind": float(values[i] / values[top] - 1),
                }
                for i in order[1:6]
            ),
            notes=tuple(self.notes),
        )

    def _binding(self, point: Mapping[str, Any]) -> list[str]:
        """Say which limits of the range or the space the best point sits at."""
        notes = []
        for name, choices in self.choices.items():
            if name in self.fit.measured.levels or len(choices) < 2:
                continue
            low, high = self.fit.measured.ranges[name]
            at = float(point[name])
            for limit, edge, word in ((low, min(choices), "low"), (high, max(choices), "high")):
                if at == float(edge):
                    what = "measured" if at == limit else "offered by the space"
                    more = "less" if word == "low" else "more"
                    size = "smallest" if word == "low" else "largest"
                    notes.append(
                        f"{name} is at the {size} value {what} ({at:g}): {more} may be better "
                        "still."
                    )
        return notes


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
