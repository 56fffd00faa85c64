"""What a worker is asked to do, and what it answers: plain data that travels as JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

# phases of a synchronous step, in order (thesis, chapter 3); comm = wait + transfer
PHASES = ("io", "h2d", "md", "forward", "backward", "wait", "transfer", "update")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """A planted pause, for tests of what is measured."""

    phase: str
    worker: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One short training run on some workers.

    Parameters
    ----------
    network
        Operations of the network, as a workload describes them (docs/executors.md).
    module
        Instead of `network`, the user's own: ``{"file", "name", "arguments"}``.
    sample
        One input: ``{"shape": [...], "n_classes": n}``, with ``"vocabulary"`` for tokens.
    loss
        ``"cross_entropy"``, or ``"mse"`` against the input itself (an autoencoder).
    optimizer
        ``{"name": "adam" | "sgd", "learning_rate": x}``.
    device_batches
        Samples of each worker in a step; unequal ones give weighted gradients.
    n_warmup, n_steps
        Steps to drop, and overlapped steps to time: the real step time.
    n_phase_steps
        Steps of a second pass without overlap, in which phases are timed apart.
    per_layer
        Whether forward and backward are timed per layer in that second pass.
    data
        ``{"kind": "generated", "n_samples": n}``, or a folder of real data
        ``{"kind": "idx" | "cifar10" | "nifti", "folder": "..."}``.
    seed
        Of weights, data and dropout.
    delays
        Planted pauses.
    return_weights
        Whether all weights come back, for tests of small networks.
    values
        The trial, for executors that run a command line of the user's.
    division
        How a plan divides the step: ``strategy``, ``placement``, ``stages`` (of operations) and
        ``replica_batches``; None: data parallelism by `device_batches`.
    precision
        Of a divided step: ``float32`` or ``float64``.
    """

    network: Sequence[Mapping[str, Any]] = ()
    module: Mapping[str, Any] | None = None
    sample: Mapping[str, Any]
    loss: str = "cross_entropy"
    optimizer: Mapping[str, Any]
    device_batches: Sequence[int]
    n_warmup: int = 2
    n_steps: int = 10
    n_phase_steps: int = 0
    per_layer: bool = False
    data: Mapping[str, Any] = field(
        default_factory=lambda: {"kind": "generated", "n_samples": 1024}
    )
    seed: int = 0
    delays: Sequence[Delay] = ()
    return_weights: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)
    division: Mapping[str, Any] | None = None
    precision: str = "float32"

    @property
    def n_workers(self) -> int:
        """Number of workers that the job needs."""
        return len(self.device_batches)

    def to_dict(self) -> dict[str, Any]:
        """Return the job as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """What one worker measured of itself.

    Parameters
    ----------
    rank
        Which worker.
    step_s
        Times of the overlapped steps: what a user would see.
    warmup_s
        Times of the steps before them, which count for nothing.
    phases
        One mapping from phase to seconds per step of the second pass.
    phase_step_s
        Times of the steps of the second pass, as wholes.
    layers
        ``{"name", "forward_s", "backward_s"}`` per layer, means over the middle half of the steps
        of the second pass, so that they add up.
    losses
        Loss of every step, warm-up included, before its update.
    weights_digest
        SHA-256 of all weights after the last step: equal on all workers.
    weights
        All weights as one list, when asked for.
    merged
        Phases that this framework cannot separate, as ``{"backward": ["transfer"]}``: the time
        of `transfer` is inside `backward`.
    peak_memory_bytes
        Largest resident memory of this job (of the process, where the system cannot tell).
    process
        Process id and start time: which process life measured this.
    traffic_bytes
        Payload of the collectives that the worker called in one divided step, by kind.
    tensor_peak_bytes
        Largest sum of tensor storages alive in one divided step.
    """

    rank: int
    step_s: tuple[float, ...]
    warmup_s: tuple[float, ...] = ()
    phases: tuple[Mapping[str, float], ...] = ()
    phase_step_s: tuple[float, ...] = ()
    layers: tuple[Mapping[str, Any], ...] = ()
    losses: tuple[float, ...] = ()
    weights_digest: str = ""
    weights: tuple[float, ...] = ()
    merged: Mapping[str, Sequence[str]] = field(default_factory=dict)
    peak_memory_bytes: int = 0
    process: str = ""
    traffic_bytes: Mapping[str, float] = field(default_factory=dict)
    tensor_peak_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What all workers measured of one job."""

    workers: tuple[WorkerRecord, ...]
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def step_s(self) -> tuple[float, ...]:
        """Time of every overlapped step: from one until all workers are through to the next."""
        return joint_steps([worker.step_s for worker in self.workers])


def joint_steps(workers_s: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return the times of steps of all workers from what each took for its own.

    Workers meet once in a step, not at its end. One that is held up after the meeting ends its
    step late, and the others wait for it in their next one: the longest time of each step would
    count the same moment twice.

    Examples
    --------
    >>> joint_steps([(1.0, 1.5, 1.0), (1.5, 1.0, 1.0)])
    (1.5, 1.0, 1.0)
    """
    steps: list[float] = []
    ahead = [0.0] * len(workers_s)
    for times in zip(*workers_s, strict=True):
        needed = [time_s - lead for time_s, lead in zip(times, ahead, strict=True)]
        steps.append(max(needed))
        ahead = [steps[-1] - own for own in needed]
    return tuple(steps)
