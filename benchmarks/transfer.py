"""Times on one device from another's: our transfer beside PROFET's members, a ratio, a roofline.

PROFET's measurements (Lee et al. 2022, arXiv 2208.05130): fifteen convolutional networks, five
image sizes and five batches on four instances of AWS. They are not part of Paceline: clone
github.com/ddps-lab/profet and set PACELINE_PROFET to its folder `data/anchor_data`. Always a
network at a time is left out on the target: none of its runs there is known.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from paceline.clusters import Cluster, Device, Level, Link
from paceline.estimators import transfer_times
from paceline.oracle import sweep
from paceline.scenario import Strategy
from paceline.workloads import load_workload

Array = NDArray[np.float64]
Method = Callable[[pd.DataFrame, Array, pd.DataFrame], Array]

# float32 FLOP/s and bytes/s of one device, from the makers' datasheets
DEVICES = {
    "g3": ("g3s.xlarge", 4.8e12, 160e9),  # half a Tesla M60
    "g4": ("g4dn.xlarge", 8.1e12, 320e9),  # T4
    "p2": ("p2.xlarge", 4.37e12, 240e9),  # half a Tesla K80
    "p3": ("p3.2xlarge", 15.7e12, 900e9),  # V100
}
COMPUTE = ("conv", "depthwise", "matmul")
MEMORY = ("norm", "pool", "point", "update")
KINDS = {
    "IDLE": "idle",
    "Depthwise": "depthwise",
    "Conv2D": "conv",
    "MatMul": "matmul",
    "BatchNorm": "norm",
    "Pool": "pool",
    "Gradient": "update",
    "Variable": "update",
}
SHIPPED = {"VGG16": "vgg16", "ResNet18": "resnet18", "ResNet50": "resnet50"}
FEW = (5, 10, 20, 40)
N_DRAWS = 2
WHAT = ("model", "image_size", "batchsize")


class _Frames(pickle.Unpickler):
    """Read tables and nothing else: a pickle may name only what a table is made of."""

    allowed = frozenset(
        {
            "builtins.slice",
            "numpy.dtype",
            "numpy.ndarray",
            "numpy.core.multiarray._reconstruct",
            "pandas.core.frame.DataFrame",
            "pandas.core.indexes.base.Index",
            "pandas.core.indexes.base._new_Index",
            "pandas.core.internals.managers.BlockManager",
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("pandas.core.indexes.numeric", "Int64Index"):
            return pd.Index
        if f"{module}.{name}" not in self.allowed:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a table")
        return super().find_class(module, name)


def load_anchor(folder: Path, anchor: str) -> pd.DataFrame:
    """Return one row per network, image size and batch: the median of nine repeats."""
    with (folder / f"anchor_{anchor}.pickle").open("rb") as file:
        raw = _Frames(file).load()
    operations = [name for name in raw if name.startswith(("Device_", "Host_"))]
    targets = [DEVICES[key][0] for key in DEVICES if key != anchor]
    keys = ["model", "dataset", "batchsize"]
    rows = raw.groupby(keys)[[*operations, "batch_latency", *targets]].median().reset_index()
    parts = rows[operations].T.groupby(_kind).sum().T
    names = {DEVICES[key][0]: key for key in DEVICES}
    times = (rows[targets] * 1e-6).rename(columns=names)  # microseconds there, seconds here
    sizes = rows["dataset"].str.removesuffix("dataset").astype(int).rename("image_size")
    return pd.concat(
        [
            rows[["model", "batchsize"]],
            sizes,
            parts,
            rows["batch_latency"].rename("time_s"),
            times,
        ],
        axis=1,
    )


def _kind(operation: str) -> str:
    side, name = operation.split("_", 1)
    if side == "Host":
        return "host"
    return next((kind for word, kind in KINDS.items() if word in name), "point")


def ratio(known: pd.DataFrame, y: Array, asked: pd.DataFrame) -> Array:
    """Median ratio of the two devices."""
    return asked["time_s"].to_numpy() * np.median(y / known["time_s"].to_numpy())


def linear(known: pd.DataFrame, y: Array, asked: pd.DataFrame) -> Array:
    """PROFET's first member."""
    return LinearRegression().fit(known[["time_s"]], y).predict(asked[["time_s"]])


def forest(known: pd.DataFrame, y: Array, asked: pd.DataFrame) -> Array:
    """PROFET's second member, on times by kind of operation."""
    trees = RandomForestRegressor(100, max_features=0.5, random_state=0)
    return trees.fit(known.drop(columns="time_s"), y).predict(asked.drop(columns="time_s"))


def roofline(rows: pd.DataFrame, anchor: str, target: str) -> Array:
    """Each operation scaled by the datasheets' FLOP/s or bandwidth; nothing measured there."""
    (_, flops, bandwidth), (_, its_flops, its_bandwidth) = DEVICES[anchor], DEVICES[target]
    compute, memory = (
        rows[[k for k in kinds if k in rows]].sum(axis=1) for kinds in (COMPUTE, MEMORY)
    )
    share = compute / (compute + memory)
    factor = share * flops / its_flops + (1 - share) * bandwidth / its_bandwidth
    return (rows["time_s"] * factor).to_numpy()


def oracle_times(rows: pd.DataFrame, key: str) -> Array:
    """Seconds of a step on one device by the oracle, from its datasheet alone."""
    name, flops, bandwidth = DEVICES[key]
    device = Device(
        name=name, peak_flops={"float32": flops}, memory_bytes=1e12, memory_bandwidth=bandwidth
    )
    link = Link(name="none", latency_s=0.0, bandwidth=1e9)
    cluster = Cluster(name=key, device=device, levels=(Level(name="node", size=1, link=link),))
    found = []
    for model, size, batch in rows[list(WHAT)].itertuples(index=False):
        graph = load_workload(SHIPPED[model]).graph({"image_size": int(size)})
        result = sweep(graph, cluster, [Strategy()], global_batch=int(batch), optimizer="sgd")
        found.append(float(result.step_s[0]))
    return np.array(found)


def compare_oracle(rows: pd.DataFrame, anchor: str, target: str, ours: Array) -> dict[str, float]:
    """Errors on the networks that ship with Paceline."""
    shipped = rows["model"].isin(list(SHIPPED)).to_numpy()
    own = rows[shipped]
    y, here, there = own[target].to_numpy(), oracle_times(own, anchor), oracle_times(own, target)
    return {
        "oracle": error(there, y),
        "oracle's ratio": error(own["time_s"].to_numpy() * there / here, y),
        "ratio": error(leave_networks_out(rows, target, ratio)[shipped], y),
        "ours": error(ours[shipped], y),
    }


METHODS: dict[str, Method] = {
    "ours": transfer_times,
    "ratio": ratio,
    "PROFET's line": linear,
    "PROFET's forest": forest,
}


def leave_networks_out(
    rows: pd.DataFrame, target: str, method: Method, n_known: int = 0, seed: int = 0
) -> Array:
    """Return predictions of every row from other networks' rows, all or `n_known` of them."""
    generator = np.random.default_rng(seed)
    table = rows.drop(columns=[*WHAT, *(key for key in DEVICES if key in rows)])
    y, found = rows[target].to_numpy(), np.zeros(len(rows))
    for network in rows["model"].unique():
        out = (rows["model"] == network).to_numpy()
        known = np.flatnonzero(~out)
        if n_known:
            known = generator.choice(known, n_known, replace=False)
        found[out] = method(table.iloc[known], y[known], table[out])
    return found


def error(predicted: Array, measured: Array) -> float:
    return float(np.mean(np.abs(predicted - measured) / measured))


def measure() -> dict[str, Any]:
    folder = Path(os.environ["PACELINE_PROFET"])
    pairs: dict[str, dict[str, float]] = {}
    oracle: dict[str, dict[str, float]] = {}
    few: dict[str, list[float]] = {
        f"{name}, {n} rows": [] for name in ("ours", "ratio") for n in FEW
    }
    for anchor in DEVICES:
        rows = load_anchor(folder, anchor)
        for target in (key for key in DEVICES if key != anchor):
            y = rows[target].to_numpy()
            found = {
                name: error(leave_networks_out(rows, target, method), y)
                for name, method in METHODS.items()
            }
            found["roofline"] = error(roofline(rows, anchor, target), y)
            pairs[f"{anchor} to {target}"] = found
            ours = leave_networks_out(rows, target, transfer_times)
            oracle[f"{anchor} to {target}"] = compare_oracle(rows, anchor, target, ours)
            print(f"{anchor} to {target}", {k: f"{v:.1%}" for k, v in found.items()}, flush=True)
            for n in FEW:
                for name in ("ours", "ratio"):
                    draws = [
                        error(leave_networks_out(rows, target, METHODS[name], n, seed), y)
                        for seed in range(N_DRAWS)
                    ]
                    few[f"{name}, {n} rows"].append(float(np.mean(draws)))
    few_mean = {name: round(float(np.mean(values)), 4) for name, values in few.items()}
    figures = {
        "mape": _means(pairs),
        "mape_of_pairs": pairs,
        "mape_with_few_rows": few_mean,
        "mape_of_shipped_networks": _means(oracle),
    }
    for name in ("mape", "mape_with_few_rows", "mape_of_shipped_networks"):
        print(name, figures[name])
    return figures


def _means(pairs: dict[str, dict[str, float]]) -> dict[str, float]:
    return {str(k): round(float(v), 4) for k, v in pd.DataFrame(pairs).T.mean().items()}


if __name__ == "__main__":
    measure()
