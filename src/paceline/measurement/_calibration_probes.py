"""What a calibration runs: short networks whose layers differ in kind and size, and exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.executors import Job
from paceline.workloads import LayerGraph, load_workload

MATMUL_SIZES = (16, 32, 64, 128, 256, 512, 1024)
# batch, channels, filters, side, kernel
CONV_SHAPES = (
    *((1, 4, 4, 8, 3), (4, 8, 16, 16, 3), (8, 16, 32, 16, 3), (8, 32, 32, 28, 3)),
    *((8, 64, 64, 28, 3), (8, 64, 128, 28, 3)),
)
MEMORY_BYTES = 64 << 20  # beyond the caches of a core
EXCHANGE_BYTES = tuple(1 << k for k in range(10, 25))
DIVIDED_BYTES = tuple(1 << k for k in (13, 16, 19, 21, 23))
DIVIDED_KINDS = ("all_reduce", "all_gather", "point_to_point")
# width, sharded units, linear maps in each
SHARDED_CHAINS = ((16, 8, 1), (16, 4, 4), (256, 4, 2), (768, 3, 2))
PIPED_CHAINS = ((64, 16), (256, 64), (256, 256), (512, 256))  # width, samples of a micro-batch


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkProbe:
    """A workload with values and a batch, run for a few steps."""

    workload: str
    values: Mapping[str, Any]
    batch: int
    n_steps: int = 8

    @property
    def graph(self) -> LayerGraph:
        """The layers that are timed."""
        return load_workload(self.workload).graph(self.values)

    def job(self, n_workers: int = 1) -> Job:
        """Return what workers are asked to run: one its layers, several whole steps at once."""
        keywords = load_workload(self.workload).job_keywords(self.values)
        if n_workers > 1:  # the update hides less of what workers cost each other
            keywords["optimizer"] = {"name": "sgd", "learning_rate": 1e-6}
        return Job(
            **keywords,
            device_batches=(self.batch,) * n_workers,
            n_warmup=2,
            n_steps=self.n_steps,
            data={"kind": "generated", "n_samples": self.batch * n_workers},
            values={"probe": "network" if n_workers == 1 else "crowd"},
        )

    def __str__(self) -> str:
        return f"{self.workload}, {self.batch} samples"


def network_probes() -> tuple[NetworkProbe, ...]:
    """Return networks of all common kinds of layers, small and large."""

    def probe(workload: str, batch: int, n_steps: int = 8, **values: Any) -> NetworkProbe:
        return NetworkProbe(workload=workload, values=values, batch=batch, n_steps=n_steps)

    return (
        probe("lenet5", 16, 20, filters=4, kernel_size=3, padding="same", activation="tanh"),
        probe("lenet5", 64, 10, filters=32, dataset="cifar10", kernel_size=3),
        probe("lenet5", 192, 5, filters=24),  # beyond the caches of a core
        probe("mlp", 32, 16, hidden=3, width=256),
        probe("mlp", 128, 8, hidden=1, width=1024),
        probe("gpt", 8, 8, layers=2, width=64, heads=2, length=32, vocabulary=512),
        probe("gpt", 8, 5, layers=2, width=192, heads=6, length=96, vocabulary=2048),
        probe("resattnet18", 8, 5, volume=24, filters=8),
        # no powers of two; many samples, of which each costs less going backward, and few, beside
        # which what weights cost shows
        probe("resnet18", 20, 4, filters=52, image_size=32, n_classes=100),
        probe("resnet18", 3, 8, filters=40, image_size=56, n_classes=10),
    )


def rates_job(n_repeats: int = 3) -> Job:
    """Return the job that times matrix products and convolutions."""
    sizes = {"matmul": list(MATMUL_SIZES), "conv": [list(shape) for shape in CONV_SHAPES]}
    return _bare_job(1, {"probe": "rates", "n_repeats": n_repeats, **sizes})


def memory_job(n_repeats: int = 10) -> Job:
    """Return the job that times the memory."""
    return _bare_job(1, {"probe": "memory", "n_repeats": n_repeats, "n_bytes": MEMORY_BYTES})


def exchange_job(n_workers: int, n_repeats: int = 8, *, every: int = 1) -> Job:
    """Return the job that times exchanges between so many workers, of every so many sizes."""
    sizes = list(EXCHANGE_BYTES[::every])
    return _bare_job(n_workers, {"probe": "collectives", "n_repeats": n_repeats, "sizes": sizes})


def divided_job(n_workers: int, n_repeats: int = 6) -> Job:
    """Return the job that times the exchanges of divided layers."""
    values = {"sizes": list(DIVIDED_BYTES), "kinds": list(DIVIDED_KINDS)}
    return _bare_job(n_workers, {"probe": "divided", "n_repeats": n_repeats, **values})


def sharded_job(n_workers: int, n_repeats: int = 8) -> Job:
    """Return the job that times steps of sharded networks."""
    chains = [list(chain) for chain in SHARDED_CHAINS]
    values = {"probe": "sharded", "n_repeats": n_repeats, "batch": 16, "chains": chains}
    return _bare_job(n_workers, values)


def piped_job(n_workers: int, n_repeats: int = 6) -> Job:
    """Return the job that times micro-batches with messages in between."""
    chains = [list(chain) for chain in PIPED_CHAINS]
    values = {"n_repeats": n_repeats, "n_maps": 3, "n_pieces": 8, "chains": chains}
    return _bare_job(n_workers, {"probe": "piped", **values})


def _bare_job(n_workers: int, values: Mapping[str, Any]) -> Job:
    return Job(
        sample={"shape": [1], "n_classes": 2},
        optimizer={"name": "sgd", "learning_rate": 0.1},
        device_batches=(1,) * n_workers,
        values=values,
    )
