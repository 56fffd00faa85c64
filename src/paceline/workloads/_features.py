"""Columns that follow from the layers of what is trained, for a table of trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from paceline.errors import InfeasibleError, InvalidInputError
from paceline.workloads._base import Workload
from paceline.workloads._load import load_workload

if TYPE_CHECKING:
    import pandas as pd

# in the order in which they are preferred: of two that say the same the first is kept
LAYER_FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "forward_flop": "forward FLOP per worker and step",
        "activation_bytes": "bytes of activations per worker and step",
        "weight_bytes": "bytes of all weights",
        "n_parameters": "number of weights",
    }
)
BATCH_NAMES = ("device_batch", "global_batch", "n_devices")
_OF_BATCH = ("forward_flop", "activation_bytes")
_N_PROBED = 5  # rows from which every parameter is changed to see whether a layer changes

_Item = tuple[str, Any]


def layer_features(values: pd.DataFrame, workload: str = "") -> pd.DataFrame:
    """Return what one worker computes and holds in one step, for every trial.

    Parameters
    ----------
    values
        One trial per row: parameters of the workload and ``device_batch``, or ``global_batch``,
        which is divided by ``n_devices``. Parameters that are missing take the workload's
        defaults; other columns are ignored.
    workload
        Name of the workload; empty: the column ``workload`` names it.

    Returns
    -------
    DataFrame
        The columns of `LAYER_FEATURES`, as `Workload.features` gives them.

    Raises
    ------
    UnknownNameError
        When there is no such workload, or no such level of a parameter.
    InvalidInputError
        When a row cannot be built or the batch is not known; names the row.

    Examples
    --------
    >>> import pandas as pd
    >>> trials = pd.DataFrame({"filters": [8, 16], "global_batch": [64, 64], "n_devices": [2, 2]})
    >>> layer_features(trials, "lenet5")["forward_flop"].tolist()
    [23144960.0, 66647040.0]
    """
    import pandas as pd

    batch = _device_batch(values)
    codes, distinct = _distinct(values, workload)
    rows = [_sums(distinct, code, codes) for code in range(len(distinct))]
    table = pd.DataFrame(rows, columns=list(LAYER_FEATURES), dtype=float)
    table = pd.DataFrame(table.iloc[codes].set_axis(values.index))
    for name in _OF_BATCH:
        table[name] *= batch
    return table


def shaping_parameters(values: pd.DataFrame, workload: str = "") -> tuple[str, ...]:
    """Return the columns that change what the layers compute or hold, batches left out.

    Each is set to its other values in some of the rows; others, such as a learning rate, may
    change the time, but not through a layer.
    """
    known = _known_columns(values, workload)
    first = values.drop_duplicates(known)[: _N_PROBED * 4 : 4] if known else values[:0]
    return tuple(name for name in known if _shapes(name, values, first, workload))


@lru_cache(maxsize=100)
def _loaded(workload: str) -> Workload:
    return load_workload(workload)  # half the cost of a small network is its workload's


@lru_cache(maxsize=100)
def _known(workload: str) -> frozenset[str]:
    return frozenset(_loaded(workload).defaults)


def _device_batch(values: pd.DataFrame) -> Any:
    if "device_batch" in values:
        return values["device_batch"].astype(float)
    if "global_batch" not in values:
        raise InvalidInputError(
            "Columns of the layers need the batch of a worker: a column `device_batch`, or "
            f"`global_batch` and `n_devices`, but got {', '.join(map(str, values.columns))}."
        )
    devices = values["n_devices"].astype(float) if "n_devices" in values else 1.0
    return values["global_batch"].astype(float) / devices


def _known_columns(values: pd.DataFrame, workload: str) -> list[str]:
    names = [workload] if workload else sorted(set(map(str, values["workload"])))
    known = {name for one in names for name in _known(one)}
    return [str(name) for name in values.columns if name in known]


def _distinct(values: pd.DataFrame, workload: str) -> tuple[Any, list[tuple[str, list[_Item]]]]:
    """Return which network each row is, and the networks by workload and values."""
    names = _known_columns(values, workload)
    keys = names if workload else ["workload", *names]
    if not keys:
        return [0] * len(values), [(workload, [])]
    codes = values.groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    records = values[keys].drop_duplicates().to_dict("records")
    return codes, [
        (workload or str(record["workload"]), list(_items(record, names, workload)))
        for record in records
    ]


def _items(record: Mapping[Any, Any], names: list[str], workload: str) -> Iterator[_Item]:
    mine = _known(workload or str(record["workload"]))
    for name in names:
        if name in mine:
            yield name, record[name]


def _sums(distinct: list[tuple[str, list[_Item]]], code: int, codes: Any) -> list[float]:
    workload, items = distinct[code]
    try:
        return list(_of_sample(workload, tuple(items)))
    except (InfeasibleError, InvalidInputError) as error:
        row = list(codes).index(code) + 1
        raise InvalidInputError(
            f"Every row must be a network that `{workload}` can build, but row {row} is not: "
            f"{error} Leave the row out, or fit with --features none."
        ) from error


@lru_cache(maxsize=100_000)
def _of_sample(workload: str, items: tuple[_Item, ...]) -> tuple[float, ...]:
    found = _loaded(workload).features(dict(items), 1)
    return tuple(found[name] for name in LAYER_FEATURES)


def _shapes(name: str, values: pd.DataFrame, first: pd.DataFrame, workload: str) -> bool:
    others = values[name].drop_duplicates().tolist()
    return any(
        len(set(_alternatives(row, name, others, workload))) > 1
        for row in first.to_dict("records")
    )


def _alternatives(
    row: Mapping[Any, Any], name: str, others: list[Any], workload: str
) -> Iterator[tuple[float, ...]]:
    """Yield the sums over the layers for each value of one parameter that can be built."""
    which = workload or str(row["workload"])
    known = _known(which)
    for value in others:
        try:
            yield _of_sample(
                which, tuple((n, v) for n, v in {**row, name: value}.items() if n in known)
            )
        except (InfeasibleError, InvalidInputError):
            continue
