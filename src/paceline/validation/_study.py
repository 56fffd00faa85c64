"""Studies whose truth is known: times generated from printed constants."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.estimators import GenericExpression
from paceline.space import Space, load_space
from paceline.validation._facts import published_expression

PLANTABLE = ("tensorflow", "mxnet")

_SPACE = "table_4_1"
_TABLE = "4.3"
_TIME = "time_s"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Study:
    """A generated dataset with the truth behind it.

    Parameters
    ----------
    dataset
        Rows of table 4.1's space with noisy times of an epoch, at a fixed device batch.
    truth
        The expression that made the times.
    true_s
        The times without noise, in seconds.
    """

    dataset: Dataset
    truth: GenericExpression
    true_s: npt.NDArray[np.float64]


def generate_study(
    framework: str = "tensorflow",
    *,
    n_rows: int = 1000,
    noise: float = 0.05,
    random_state: int = 0,
) -> Study:
    """Generate a study from the printed constants of a framework (thesis, table 4.3).

    Rows are independent uniform draws from table 4.1's space, the same that ``Space.sample``
    draws with the same seed. Every time is multiplied by ``exp(noise * N(0, 1))``.

    Parameters
    ----------
    framework
        ``tensorflow`` or ``mxnet``; the printed column of PyTorch contradicts itself.
    n_rows
        Number of rows; a million take seconds.
    noise
        Standard deviation of the logarithm of the time; 0 for none.
    random_state
        Same seed, same study.

    Raises
    ------
    InvalidInputError
        For PyTorch, and for `n_rows`, `noise` or `random_state` that are not such numbers.
    UnknownNameError
        For a framework that is in no table.

    Examples
    --------
    >>> study = generate_study("mxnet", n_rows=100, noise=0.0)
    >>> study.dataset.n_rows, len(study.dataset.X.columns)
    (100, 12)
    """
    _check_framework(framework)
    _check_numbers(n_rows, noise, random_state)
    space = load_space(_SPACE)
    truth = published_expression(framework, _TABLE)
    rows = _draw_rows(space, n_rows, random_state)
    true_s = truth.evaluate(rows)
    # a stream of its own, so that the rows do not depend on the noise
    normal = np.random.default_rng([random_state, 1]).standard_normal(n_rows)
    dataset = _as_dataset(rows, true_s * np.exp(noise * normal), space)
    provenance = {
        "generated_from": f"thesis table {_TABLE}, {framework}",
        "space": _SPACE,
        "noise": noise,
        "random_state": random_state,
    }
    return Study(dataset=replace(dataset, provenance=provenance), truth=truth, true_s=true_s)


def _as_dataset(rows: pd.DataFrame, times_s: npt.NDArray[np.float64], space: Space) -> Dataset:
    return Dataset.from_frame(
        rows.assign(**{_TIME: times_s}),
        time=_TIME,
        intrinsic=space.intrinsic,
        extrinsic=space.extrinsic,
        time_per="epoch",
        batch="device_batch",
    )


def _draw_rows(space: Space, n_rows: int, random_state: int) -> pd.DataFrame:
    """Draw as `Space.sample` does, but whole columns instead of a list of trials."""
    rng = np.random.default_rng(random_state)
    columns = {}
    for parameter in space.parameters:
        choices = rng.integers(len(parameter.values), size=n_rows)
        is_text = parameter.kind == "categorical"
        values = np.array(parameter.values, dtype=object if is_text else np.float64)
        columns[parameter.name] = pd.Series(values[choices], dtype=values.dtype)
    return pd.DataFrame(columns)


def _check_framework(framework: str) -> None:
    if framework == "pytorch":
        raise InvalidInputError(
            "`framework` must be tensorflow or mxnet, but got 'pytorch': its column of table "
            "4.3 has a power at its bound (dropout, -5.00), times up to four hours and a "
            "coefficient outside its bounds (padding valid, -0.57), so it is no truth to plant."
        )
    if framework not in PLANTABLE:
        raise UnknownNameError("framework that can be planted", framework, PLANTABLE)


def _check_numbers(n_rows: int, noise: float, random_state: int) -> None:
    if not _is_whole(n_rows) or n_rows < 1:
        raise InvalidInputError(f"`n_rows` must be a positive whole number, but got {n_rows!r}.")
    if not (math.isfinite(noise) and noise >= 0):
        raise InvalidInputError(f"`noise >= 0` must hold and be finite, but got {noise!r}.")
    if not _is_whole(random_state) or random_state < 0:
        raise InvalidInputError(
            f"`random_state` must be a whole number from 0, but got {random_state!r}."
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
