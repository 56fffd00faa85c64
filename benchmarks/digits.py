"""Accuracy of the unlocked schedule on a real task: scikit-learn's digits, held-out samples.

``python benchmarks/digits.py`` trains serially and with 2 to 4 stages, with every seed.
"""

from __future__ import annotations

import math
import struct
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from paceline.executors import BaseExecutor, Job, RunRecord, load_executor

N_TRAIN = 1347  # of 1797; the others are held out
BATCH = 64
N_STEPS = 600  # some 28 epochs
MICRO_BATCHES = 4


@dataclass(frozen=True)
class Digits:
    """Images of handwritten digits, written as the files that workers read."""

    folder: Path
    held_out: Any
    labels: Any


def write_digits(folder: Path) -> Digits:
    """Write the training samples as IDX files, in an order that mixes classes."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    pixels = np.round(images[order] * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8)
    classes = labels[order].astype(np.uint8)
    header = struct.pack(">IIII", 2051, N_TRAIN, 8, 8)
    (folder / "train-images-idx3-ubyte").write_bytes(header + pixels[:N_TRAIN].tobytes())
    header = struct.pack(">II", 2049, N_TRAIN)
    (folder / "train-labels-idx1-ubyte").write_bytes(header + classes[:N_TRAIN].tobytes())
    held_out = pixels[N_TRAIN:, None].astype(np.float32) / 255
    return Digits(folder, held_out, classes[N_TRAIN:])


def operations() -> list[dict[str, Any]]:
    """Return a small convolutional network of ten operations."""
    conv = {"op": "conv", "dims": 2, "kernel": 3, "stride": 1, "padding": [1, 1], "bias": True}
    relu = {"op": "activation", "function": "relu"}
    return [
        {**conv, "name": "conv1", "in": 1, "out": 16},
        {**relu, "name": "relu1"},
        {**conv, "name": "conv2", "in": 16, "out": 32},
        {**relu, "name": "relu2"},
        {"op": "pool", "name": "pool", "kind": "max", "dims": 2, "kernel": 2, "stride": 2},
        {"op": "flatten", "name": "flatten"},
        {"op": "linear", "name": "dense1", "in": 512, "out": 64, "bias": True},
        {**relu, "name": "relu3"},
        {"op": "linear", "name": "dense2", "in": 64, "out": 64, "bias": True},
        {**relu, "name": "relu4"},
        {"op": "linear", "name": "dense3", "in": 64, "out": 10, "bias": True},
    ]


# operations of every stage
STAGES = {
    1: [[0, 11]],
    2: [[0, 5], [5, 11]],
    3: [[0, 2], [2, 6], [6, 11]],
    4: [[0, 2], [2, 6], [6, 8], [8, 11]],
}


def digits_job(digits: Digits, n_stages: int, seed: int, n_steps: int = N_STEPS) -> Job:
    """Return the job: one stage is serial training, more are the unlocked schedule."""
    strategy = {
        **{"data": 1, "pipeline": n_stages, "schedule": "unlocked" if n_stages > 1 else "1f1b"},
        "micro_batches": MICRO_BATCHES if n_stages > 1 else 1,
    }
    return Job(
        network=operations(),
        sample={"shape": [1, 8, 8], "n_classes": 10},
        optimizer={"name": "adam", "learning_rate": 0.001},
        device_batches=[BATCH] * n_stages,
        data={"kind": "idx", "folder": str(digits.folder)},
        n_warmup=0,
        n_steps=n_steps,
        seed=seed,
        return_weights=True,
        division={
            "strategy": strategy,
            "placement": [list(range(n_stages))],
            "stages": STAGES[n_stages],
            "replica_batches": [BATCH],
        },
    )


def staleness(n_stages: int) -> list[int]:
    """Return by how many updates the gradients of every stage are late, at most."""
    return [math.ceil(2 * (n_stages - 1 - k) / MICRO_BATCHES) for k in range(n_stages)]


def accuracy(record: RunRecord, digits: Digits) -> float:
    """Return the share of held-out samples that the trained weights tell right."""
    import torch
    from torch import nn

    network = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 64),
        nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    weights = [w for worker in record.workers for w in worker.weights]
    nn.utils.vector_to_parameters(torch.tensor(weights), network.parameters())
    with torch.no_grad():
        told = network(torch.from_numpy(digits.held_out)).argmax(dim=1).numpy()
    return float((told == digits.labels).mean())


def accuracies(
    executor: BaseExecutor,
    digits: Digits,
    n_stages: int,
    seeds: Iterable[int],
    n_steps: int = N_STEPS,
) -> list[float]:
    """Return the accuracy of every seed."""
    jobs = [digits_job(digits, n_stages, seed, n_steps) for seed in seeds]
    with executor.open(n_stages) as pool:
        return [accuracy(pool.run(job, 900), digits) for job in jobs]


def measure(n_seeds: int = 5) -> dict[str, list[float]]:
    """Print and return the accuracies of all numbers of stages."""
    executor = load_executor("torch").warm()
    print(f"digits, {N_STEPS} steps of {BATCH} samples, {n_seeds} seeds, held-out accuracy")
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        digits = write_digits(Path(folder))
        for n_stages in STAGES:
            found = accuracies(executor, digits, n_stages, range(n_seeds))
            name = "serial" if n_stages == 1 else f"unlocked, {n_stages} stages"
            figures[name] = found
            late = ", ".join(map(str, staleness(n_stages)))
            shown = " ".join(f"{100 * a:.2f}" for a in found)
            print(f"  {name:20} mean {100 * fmean(found):.2f} % ({shown}); updates late: {late}")
    executor.close()
    return figures


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
