"""What a sweep found, one row per strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paceline.clusters import Cluster
from paceline.oracle._limits import Rule
from paceline.oracle._traffic import COLLECTIVES
from paceline.oracle.strategies import GRADIENTS, HALO, LAYERWISE, TRANSFERS
from paceline.scenario import SCHEDULES, StrategyTable
from paceline.workloads import LayerGraph

Array = NDArray[np.float64]

# seconds that add up to a step, with the word for each when it is the largest
SECONDS: Mapping[str, str] = {
    "forward_s": "compute",
    "backward_s": "compute",
    "update_s": "weight update",
    "bubble_s": "pipeline bubble",
    "layerwise_s": LAYERWISE,
    "halo_s": HALO,
    "transfer_s": TRANSFERS,
    "gradient_s": GRADIENTS,
}
MEMORY = (
    "weights_bytes",
    "gradients_bytes",
    "state_bytes",
    "activations_bytes",
    "buffers_bytes",
)
# payload by cause, and by collective
TRAFFIC = (
    "exchange_payload_bytes",
    "layerwise_payload_bytes",
    "transfer_payload_bytes",
    *(f"{name}_bytes" for name in COLLECTIVES),
)
FIGURES = (
    *SECONDS,
    "step_s",
    "gradient_total_s",
    *TRAFFIC,
    *MEMORY,
    "efficiency",
    "stage_stride",  # devices from one stage of a pipeline to the next
)

# what limits a row, in the order of the codes
BOTTLENECKS = (*dict.fromkeys(SECONDS.values()), "memory", "limit on degree")


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """Time, traffic and memory by strategy.

    Parameters
    ----------
    graph, cluster
        What was asked of.
    table, global_batch
        Strategy and batch of every row.
    figures
        Seconds and bytes by name (`FIGURES`); not a number where a row is impossible.
    rules
        Rules that some rows break.
    """

    graph: LayerGraph
    cluster: Cluster
    table: StrategyTable
    global_batch: NDArray[np.int64]
    figures: Mapping[str, Array]
    rules: tuple[Rule, ...] = ()

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, name: str) -> Array:
        return self.figures[name]

    @property
    def step_s(self) -> Array:
        """Seconds of a step, by row."""
        return self.figures["step_s"]

    @cached_property
    def compute_s(self) -> Array:
        """Forward, backward and update."""
        return self["forward_s"] + self["backward_s"] + self["update_s"]

    @cached_property
    def communication_s(self) -> Array:
        """What is not hidden of all communication."""
        return self["layerwise_s"] + self["halo_s"] + self["transfer_s"] + self["gradient_s"]

    @cached_property
    def memory_bytes(self) -> Array:
        """What the fullest device holds."""
        return np.asarray(sum(self.figures[name] for name in MEMORY))

    @cached_property
    def is_possible(self) -> NDArray[np.bool_]:
        """Whether network and batch allow the strategy."""
        return np.isfinite(self.step_s)

    @cached_property
    def fits(self) -> NDArray[np.bool_]:
        """Whether it is possible and every device has the memory."""
        return self.is_possible & (self.memory_bytes <= self.memory_limits)

    @cached_property
    def memory_limits(self) -> Array:
        """Memory of the smallest device that a row uses: of the first so many of the cluster."""
        n = self.table.n_devices
        if self.cluster.is_even:
            return np.full(len(n), float(self.cluster.device.memory_bytes))
        smallest = np.minimum.accumulate(self.cluster.memories(int(n.max(initial=1))))
        return np.asarray(smallest[np.minimum(n, len(smallest)) - 1])

    @cached_property
    def bottleneck(self) -> NDArray[np.int64]:
        """Place in `BOTTLENECKS` of what limits every row."""
        words = list(dict.fromkeys(SECONDS.values()))
        totals = np.zeros((len(words), len(self)))
        for name, word in SECONDS.items():
            totals[words.index(word)] += self.figures[name]
        code = np.where(self.is_possible, np.nan_to_num(totals).argmax(axis=0), -1)
        code = np.where(self.is_possible & ~self.fits, len(words), code)
        return np.where(code < 0, len(words) + 1, code)

    def at_slowest(self) -> SweepResult:
        """Return the result where every pass takes as long as on the slowest device in use.

        All wait for it at the end of a step. Where all devices are equal that changes nothing.
        """
        if self.cluster.is_even:
            return self
        n = self.table.n_devices
        slowest = np.minimum.accumulate(self.cluster.speeds(int(n.max(initial=1))))
        longer = 1 / slowest[np.minimum(n, len(slowest)) - 1]
        parts = ("forward_s", "backward_s", "update_s", "bubble_s")
        figures = {**self.figures, **{name: self.figures[name] * longer for name in parts}}
        figures["step_s"] = np.sum([figures[name] for name in SECONDS], axis=0)
        figures["efficiency"] = self["efficiency"] * self.step_s / figures["step_s"]
        return replace(self, figures=figures)

    def take(self, rows: NDArray[np.int64]) -> SweepResult:
        """Return some rows."""
        return replace(
            self,
            table=self.table.take(rows),
            global_batch=self.global_batch[rows],
            figures={name: values[rows] for name, values in self.figures.items()},
            rules=tuple(replace(rule, broken=rule.broken[rows]) for rule in self.rules),
        )

    def why(self, row: int) -> str:
        """Return why a row is impossible, or what it lacks in memory; empty when it is fine."""
        for rule in self.rules:
            if rule.broken[row]:
                return rule.words(self.table, self.global_batch, row)
        lacks = self.memory_bytes[row] - self.memory_limits[row]
        if not self.fits[row]:
            which = "the device" if self.cluster.is_even else "the smallest of its devices"
            return f"{lacks / 2**30:.1f} GiB more memory than {which} has"
        return ""

    def epoch_s(self, n_samples: int) -> Array:
        """Return the seconds of an epoch of so many samples."""
        return np.ceil(n_samples / self.global_batch) * self.step_s

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All figures, one row per strategy."""
        columns: dict[str, object] = {
            "n_devices": self.table.n_devices,
            "global_batch": self.global_batch,
            **self.table.columns,
        }
        columns["schedule"] = np.array(SCHEDULES)[self.table["schedule"]]
        columns["recompute"] = self.table["recompute"].astype(bool)
        columns |= {
            "step_s": self.step_s,
            "compute_s": self.compute_s,
            "communication_s": self.communication_s,
            "memory_bytes": self.memory_bytes,
            "fits": self.fits,
            "bottleneck": np.array(BOTTLENECKS)[self.bottleneck],
            "samples_per_s": self.global_batch / self.step_s,
        }
        columns |= {name: self.figures[name] for name in FIGURES if name not in columns}
        return pd.DataFrame(columns)
