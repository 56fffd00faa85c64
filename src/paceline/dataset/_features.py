"""How further columns follow from the parameters of a dataset."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pandas as pd

if TYPE_CHECKING:
    from paceline.dataset._dataset import Dataset


class Derivation(Protocol):
    """Something that derives columns from parameters, such as the FLOP of a step."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns; none when nothing is to be derived."""

    def derive(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of rows that have the parameters."""


def widen(dataset: Dataset) -> Dataset:
    """Return the dataset with its derived columns as intrinsic numeric parameters."""
    if dataset.features is None or not dataset.features.names:
        return dataset
    derived = dataset.features.derive(dataset.X)
    names = list(derived.columns)
    return replace(
        dataset,
        X=dataset.X.join(derived),
        roles={**dataset.roles, **dict.fromkeys(names, "intrinsic")},
        kinds={**dataset.kinds, **dict.fromkeys(names, "numeric")},
        features=None,
    )
