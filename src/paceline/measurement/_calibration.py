"""Measure this machine and describe it as a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from paceline.errors import InvalidInputError
from paceline.measurement._calibration_describe import Calibration, describe
from paceline.measurement._calibration_plan import Plan, ProgressCallback
from paceline.measurement._calibration_probes import NetworkProbe, network_probes
from paceline.measurement._machine import load_average


def calibrate(
    *,
    workers: Sequence[int] = (1, 2, 3),
    n_lives: int = 5,
    backend: str = "gloo",
    name: str = "here",
    probes: Sequence[NetworkProbe] | None = None,
    environment: Mapping[str, str] | None = None,
    launch: Callable[[int], Sequence[str]] | None = None,
    progress: ProgressCallback | None = None,
) -> Calibration:
    """Measure this machine: rates, memory, layers of small networks, exchanges.

    Parameters
    ----------
    workers
        Numbers of workers to measure exchanges between and slowing down with; 1 is always
        measured.
    n_lives
        Fresh processes that networks are run in; the least time counts. What has no network is
        measured in two of them.
    backend
        Of ``torch.distributed``: ``gloo``, or ``nccl`` where there are GPUs.
    name
        Of the cluster.
    probes
        Networks to run instead of those that are shipped.
    environment
        Variables to add to those of the workers, as ``MASTER_ADDR`` and ``GLOO_SOCKET_IFNAME``.
    launch
        What to put before the command of a worker to start it elsewhere, by rank, so that the
        links between hosts are measured; as the executors take it.
    progress
        Called with what is done, the total, and what comes next.

    Raises
    ------
    MissingDependencyError
        When PyTorch is not installed.
    ExecutionError
        When a worker fails; all of them are ended.
    """
    counts = _counts(workers)
    if n_lives < 1:
        raise InvalidInputError(f"`n_lives` must be at least 1, but got {n_lives}.")
    shown = network_probes() if probes is None else tuple(probes)
    plan = Plan(
        counts=counts,
        probes=shown,
        n_lives=n_lives,
        backend=backend,
        environment=environment or {},
        launch=launch or (lambda rank: ()),
    )
    load = load_average()
    found = plan.measure(progress or (lambda done, total, label: None))
    return replace(describe(plan, found, name), load=load[0] if load else None)


def _counts(workers: Sequence[int]) -> tuple[int, ...]:
    if not workers or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in workers):
        raise InvalidInputError(
            f"`workers` must be positive whole numbers, but got {list(workers)!r}."
        )
    return tuple(sorted({1, *workers}))
