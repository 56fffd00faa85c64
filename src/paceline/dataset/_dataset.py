"""Observations, one row each, ready for an estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from paceline.dataset._basis import Batch, TimeBasis, TimePer
from paceline.dataset._card import html_card
from paceline.dataset._export import write_csv, write_parquet
from paceline.dataset._features import Derivation
from paceline.dataset._frame import read_frame
from paceline.dataset._observation import Observation
from paceline.dataset._observations import collect_observations, list_observations
from paceline.dataset._options import TIME, ReadOptions
from paceline.dataset._split import choose_fit_rows
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.space import Kind, Role, Space


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """Measured runs: parameters, times, and what is known about both.

    Parameters
    ----------
    X
        Parameters only, one row per run; numeric columns as floats, categorical ones as text.
    y
        Time of every row in seconds, named ``time_s``.
    roles, kinds
        Role and kind of every parameter.
    basis
        What the time is of.
    times_s
        Raw repeats of every row in seconds (`y` is their median), where they are known.
    other
        Columns that are not parameters, such as a group.
    notes
        Every choice made while reading, one sentence each.
    provenance
        Where the data come from.
    features
        How further columns follow from the parameters; None when nobody has asked yet.
    group
        The column that was said to group the rows; None: rows of one configuration.
    """

    X: pd.DataFrame
    y: pd.Series[float]
    roles: dict[str, Role]
    kinds: dict[str, Kind]
    basis: TimeBasis = field(default_factory=TimeBasis)
    times_s: tuple[tuple[float, ...], ...] | None = None
    other: pd.DataFrame = field(default_factory=pd.DataFrame)
    notes: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    features: Derivation | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        names = list(self.X.columns)
        for label, given in (("roles", self.roles), ("kinds", self.kinds)):
            if sorted(given) != sorted(names):
                raise InvalidInputError(
                    f"`{label}` must name every column of X, but got {list(given)} for {names}."
                )
        doubled = {*names, TIME} & {*self.other.columns} or {TIME} & {*names}
        if doubled:
            raise InvalidInputError(f"Every column must have one place, but got {doubled} twice.")
        if not len(self.other) and len(self.X):
            object.__setattr__(self, "other", pd.DataFrame(index=self.X.index))
        lengths = {len(self.X), len(self.y), len(self.other)}
        lengths |= set() if self.times_s is None else {len(self.times_s)}
        if len(lengths) > 1:
            raise InvalidInputError(f"All parts must have as many rows, but got {lengths}.")

    def __len__(self) -> int:
        return len(self.X)

    def __str__(self) -> str:
        rows = "1 row" if len(self) == 1 else f"{len(self)} rows"
        return (
            f"{rows}; intrinsic: {', '.join(self.intrinsic) or 'none'}; "
            f"extrinsic: {', '.join(self.extrinsic) or 'none'}; {self.basis}"
        )

    def _repr_html_(self) -> str:
        facts = {"rows": str(len(self)), "time": str(self.basis)}
        for name, role in self.roles.items():
            facts[f"{name} ({role})"] = f"{self.X[name].nunique()} values"
        return html_card("Dataset", facts)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def intrinsic(self) -> list[str]:
        """Names of the parameters that say what the job is."""
        return [name for name in self.X.columns if self.roles[name] == "intrinsic"]

    @property
    def extrinsic(self) -> list[str]:
        """Names of the parameters that say how the job is scaled."""
        return [name for name in self.X.columns if self.roles[name] == "extrinsic"]

    @property
    def numeric(self) -> list[str]:
        """Names of the numeric parameters."""
        return [name for name in self.X.columns if self.kinds[name] == "numeric"]

    @property
    def categorical(self) -> list[str]:
        """Names of the categorical parameters."""
        return [name for name in self.X.columns if self.kinds[name] == "categorical"]

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        time: str = TIME,
        intrinsic: Sequence[str] | None = None,
        extrinsic: Sequence[str] | None = None,
        categorical: Sequence[str] = (),
        time_unit: str | None = None,
        throughput: str | None = None,
        time_per: TimePer | None = None,
        batch: Batch | None = None,
        group: str | None = None,
    ) -> Dataset:
        """Return the dataset in a table.

        Parameters
        ----------
        frame
            One row per measured run.
        time
            The column that holds the time.
        intrinsic, extrinsic
            The parameters by role; other columns are then ignored. With neither given, every
            column is a parameter and its role and kind are guessed; see `notes`.
        categorical
            Columns of numbers that are labels.
        time_unit
            ``s``, ``ms`` or ``us``; None: as the name of the column says, else seconds.
        throughput
            A column of samples per `time_unit`; the time of a step is then the global batch,
            made from the batch and device columns, divided by it.
        time_per, batch
            The time basis; the batch is guessed from names when not given.
        group
            A column that groups the rows and is not a parameter unless named as one.

        Raises
        ------
        UnknownNameError
            When a named column is not there.
        InvalidInputError
            For cells that are missing, no numbers or no times; names the row.

        Examples
        --------
        >>> frame = pd.DataFrame({"n_devices": [1, 2, 4], "time_s": [4.0, 2.1, 1.2]})
        >>> print(Dataset.from_frame(frame, time_per="step"))
        3 rows; intrinsic: none; extrinsic: n_devices; time per step, batch unknown
        """
        options = ReadOptions(
            time=time,
            intrinsic=intrinsic,
            extrinsic=extrinsic,
            categorical=categorical,
            time_unit=time_unit,
            throughput=throughput,
            time_per=time_per,
            batch=batch,
            group=group,
        )
        return cls(**read_frame(frame, options))

    @classmethod
    def from_observations(
        cls, space: Space, observations: Sequence[Observation], basis: TimeBasis
    ) -> Dataset:
        """Return the dataset of those observations that did not fail.

        Parameters
        ----------
        space
            Gives the parameters and their roles.
        observations
            One row each; failed ones are left out, and parameters that never vary are set
            aside, with a note.
        basis
            What the times are of.
        """
        return cls(**collect_observations(space, observations, basis))

    def observations(self) -> list[Observation]:
        """Return the rows as observations."""
        return list(list_observations(self.X, self.y, self.times_s))

    def to_csv(self, path: str | Path) -> None:
        """Write parameters, other columns and ``time_s`` as a CSV file."""
        write_csv(self, Path(path))

    def to_parquet(self, path: str | Path) -> None:
        """Write a Parquet file that keeps roles, kinds, basis and raw times.

        Raises
        ------
        MissingDependencyError
            When pyarrow is not installed.
        """
        write_parquet(self, Path(path))

    def groups(self, column: str | None = None) -> npt.NDArray[Any]:
        """Return a label per row: rows of one group must not be split between folds.

        Parameters
        ----------
        column
            A parameter or another column; None numbers the identical configurations.
        """
        if column is None:
            return self._configurations()
        for table in (self.X, self.other):
            if column in table.columns:
                return table[column].to_numpy()
        raise UnknownNameError("column", column, [*self.X.columns, *self.other.columns])

    def take(self, rows: Sequence[int] | Sequence[bool] | npt.NDArray[Any]) -> Dataset:
        """Return a dataset of some rows, by position or by mask, in the order asked for."""
        positions = _positions(rows, len(self))
        times_s = self.times_s
        return Dataset(
            X=self.X.iloc[positions].reset_index(drop=True),
            y=self.y.iloc[positions].reset_index(drop=True),
            roles=dict(self.roles),
            kinds=dict(self.kinds),
            basis=self.basis,
            times_s=None if times_s is None else tuple(times_s[i] for i in positions),
            other=self.other.iloc[positions].reset_index(drop=True),
            notes=self.notes,
            provenance=dict(self.provenance),
            features=self.features,
            group=self.group,
        )

    def split(
        self,
        *,
        share: float | None = None,
        n_fit: int | None = None,
        up_to: Mapping[str, float] | None = None,
        group: str | None = None,
        random_state: int = 0,
    ) -> tuple[Dataset, Dataset]:
        """Split into a part to fit and the rest.

        Parameters
        ----------
        share
            Share of the rows to fit, drawn at random; with `group`, share of the groups.
        n_fit
            Number of rows to fit, drawn at random.
        up_to
            Largest value to fit per numeric column: the rest is out of the fitted range.
        group
            Column whose groups must stay whole; with `share` only.
        random_state
            Same seed, same split.

        Raises
        ------
        InvalidInputError
            When not exactly one way is asked for, or a part would be empty.
        """
        is_fit = choose_fit_rows(
            self, share=share, n_fit=n_fit, up_to=up_to, group=group, random_state=random_state
        )
        return self.take(is_fit), self.take(~is_fit)

    def _configurations(self) -> npt.NDArray[Any]:
        if not self.X.shape[1]:
            return np.zeros(len(self), dtype=np.int64)
        return self.X.groupby(list(self.X.columns), sort=False).ngroup().to_numpy()


def _positions(rows: object, n_rows: int) -> npt.NDArray[np.intp]:
    array = np.asarray(rows)
    if array.dtype == bool:
        if len(array) != n_rows:
            raise InvalidInputError(
                f"A mask must have one entry per row, but got {len(array)} for {n_rows} rows."
            )
        return np.flatnonzero(array)
    if array.size and (array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= n_rows):
        raise InvalidInputError(f"`rows` must be positions from 0 to {n_rows - 1}.")
    return array.astype(np.intp)
