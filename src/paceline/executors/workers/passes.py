"""The two passes of a job, and what is equal in every framework that numpy comes with.

Standard library and numpy only; Python 3.8 syntax. PyTorch's worker has passes of its own.
"""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from paceline.executors.workers import protocol
    from paceline.executors.workers.samples import load_samples
else:
    import protocol  # neighbours: Paceline is not installed here
    from samples import load_samples

OPERATIONS = ("conv", "pool", "linear", "activation", "dropout", "flatten")
ACTIVATIONS = ("relu", "tanh", "sigmoid", "gelu")
# phases after the samples are on the device, by the trainer's methods of the same name
_TRAINING = ("forward", "backward", "wait", "transfer", "update")


class Trainer(ABC):
    """One network in training; every framework fills this in.

    Attributes
    ----------
    merged
        Phases that the framework cannot separate.
    """

    merged: Mapping[str, Sequence[str]] = {}

    @abstractmethod
    def put(self, inputs: np.ndarray, labels: np.ndarray) -> Any:
        """Return samples as tensors on the device, ready when this returns."""

    @abstractmethod
    def step(self, batch: Any) -> float:
        """Do all of a step in the framework's own overlapped way and return the loss."""

    @abstractmethod
    def forward(self, batch: Any) -> None:
        """Compute the loss of this worker's samples."""

    @abstractmethod
    def backward(self) -> None:
        """Compute the gradients, multiplied by this worker's share of the samples."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until every worker is here."""

    @abstractmethod
    def transfer(self) -> None:
        """Sum the gradients over the workers."""

    @abstractmethod
    def update(self) -> None:
        """Let the optimizer change the weights."""

    @abstractmethod
    def loss(self) -> float:
        """Return the loss of the last `forward`."""

    @abstractmethod
    def weights(self) -> Iterable[np.ndarray]:
        """Return all weights, in the order and layout of `initial_weights`."""


def run_job(job: dict[str, Any], build: Callable[[dict[str, Any]], Trainer]) -> dict[str, Any]:
    """Train as the job says and return the fields of a worker record."""
    check(job)
    worker = protocol.rank()
    steps, trainer = _Steps(job, worker), build(job)
    warmup, apart, whole = (protocol.Clock(job, worker) for _ in range(3))
    for number in range(job["n_warmup"]):
        # both ways of a step must be warm: each compiles functions of its own
        odd = job["n_phase_steps"] and number % 2
        (_phase_step if odd else _whole_step)(trainer, steps, warmup)
    gc.collect()  # rubbish of the construction must not be swept up inside a timed step
    for _ in range(job["n_steps"]):
        _whole_step(trainer, steps, whole)
    for _ in range(job["n_phase_steps"]):
        _phase_step(trainer, steps, apart)
    times = {"step_s": whole.step_s, "warmup_s": warmup.step_s}
    return {**times, **_record(job, trainer, steps, apart)}


def _record(
    job: dict[str, Any], trainer: Trainer, steps: _Steps, apart: protocol.Clock
) -> dict[str, Any]:
    weights = [np.ascontiguousarray(w, dtype=np.float32) for w in trainer.weights()]
    flat = [w.ravel() for w in weights] if job.get("return_weights") else []
    return {
        "phases": apart.phases,
        "phase_step_s": apart.step_s,
        "losses": steps.losses,
        "weights_digest": protocol.digest(w.tobytes() for w in weights),
        "weights": np.concatenate(flat).astype(float).tolist() if flat else [],
        "merged": dict(trainer.merged),
    }


class _Steps:
    """Counts steps, reads their samples, keeps their losses."""

    def __init__(self, job: dict[str, Any], worker: int) -> None:
        self._job, self._worker, self._number = job, worker, 0
        self._samples = load_samples(job)
        self.losses: list[float] = []

    def read(self, clock: protocol.Clock, trainer: Trainer) -> Any:
        with clock.phase("md"):
            start, count = protocol.part_of_step(self._job, self._worker, self._number)
            self._number += 1
        with clock.phase("io"):
            content = self._samples.read(start, count)
            labels = self._samples.labels(start, count)
        with clock.phase("h2d"):
            item = np.dtype({"B": np.uint8, "i": np.int32, "f": np.float32}[self._samples.item])
            inputs = np.frombuffer(content, item).astype(np.float32)
            if item == np.uint8:
                inputs *= np.float32(1 / 255)
            inputs = inputs.reshape([count, *self._samples.shape])
            return trainer.put(inputs, np.frombuffer(labels, np.int64))


def _whole_step(trainer: Trainer, steps: _Steps, clock: protocol.Clock) -> None:
    clock.begin_step()
    batch = steps.read(clock, trainer)
    for phase in _TRAINING:
        clock.pause(phase)
    loss = trainer.step(batch)
    clock.end_step()
    steps.losses.append(loss)


def _phase_step(trainer: Trainer, steps: _Steps, clock: protocol.Clock) -> None:
    clock.begin_step()
    batch = steps.read(clock, trainer)
    with clock.phase("forward"):
        trainer.forward(batch)
    for phase in _TRAINING[1:]:
        with clock.phase(phase):
            getattr(trainer, phase)()
    clock.end_step()
    steps.losses.append(trainer.loss())


def check(job: dict[str, Any]) -> None:
    """Refuse what only PyTorch's worker can do."""
    if job.get("module"):
        raise protocol.RefusedError("A module of the user's own must run on the executor 'torch'.")
    if job["sample"].get("vocabulary"):
        raise protocol.RefusedError("Samples of tokens must run on the executor 'torch'.")
    for op in job["network"]:
        if op["op"] not in OPERATIONS:
            raise protocol.RefusedError(
                f"Operations must be among {', '.join(OPERATIONS)}, but got {op['op']!r}: "
                "run this workload on the executor 'torch'."
            )
        if op["op"] == "activation" and op["function"] not in ACTIVATIONS:
            raise protocol.RefusedError(
                f"Activations must be among {', '.join(ACTIVATIONS)}, but got "
                f"{op['function']!r}: run this workload on the executor 'torch'."
            )


def initial_weights(job: dict[str, Any]) -> list[tuple[str, np.ndarray]]:
    """Return all weights by name, drawn from the job's seed alone.

    Uniform in ±1/sqrt(fan-in), layout (out, in, ...): every framework starts with the same.
    """
    draw = np.random.default_rng(job["seed"])
    weights = []
    for op in job["network"]:
        if op["op"] not in ("conv", "linear"):
            continue
        kernel = [op["kernel"]] * op["dims"] if op["op"] == "conv" else []
        bound = 1 / np.sqrt(op["in"] * np.prod(kernel, dtype=float))
        shapes = {"weight": [op["out"], op["in"], *kernel]}
        if op.get("bias", True):
            shapes["bias"] = [op["out"]]
        for kind, shape in shapes.items():
            values = draw.uniform(-bound, bound, shape).astype(np.float32)
            weights.append((op["name"] + "." + kind, values))
    return weights


def channels_last(weight: np.ndarray) -> np.ndarray:
    """Return a weight (out, in, ...) as (..., in, out); biases stay."""
    return weight if weight.ndim == 1 else np.moveaxis(weight, (1, 0), (-2, -1))


def channels_first(weight: np.ndarray) -> np.ndarray:
    """Return a weight (..., in, out) as (out, in, ...); biases stay."""
    return weight if weight.ndim == 1 else np.moveaxis(weight, (-2, -1), (1, 0))
