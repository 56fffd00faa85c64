"""Studies that take no time, and executors that obey."""

from collections.abc import Callable
from typing import Any

from paceline.executors import Job, SimulatedExecutor
from paceline.measurement import Study

DATA: dict[str, Any] = {
    "schema": "paceline/study/1",
    "name": "small",
    "workload": "lenet5",
    "executor": "torch",
    "n_trials": 12,
    "design": "random",
    "random_state": 3,
    "parameter": [
        {"name": "filters", "role": "intrinsic", "kind": "numeric", "values": [4, 8, 16]},
        {
            "name": "activation",
            "role": "intrinsic",
            "kind": "categorical",
            "values": ["relu", "tanh"],
        },
        {"name": "n_devices", "role": "extrinsic", "kind": "numeric", "values": [1, 2]},
        {"name": "device_batch", "role": "extrinsic", "kind": "numeric", "values": [8, 16, 32]},
    ],
    "protocol": {"n_warmup": 1, "n_steps": 4, "recycle_every": 6, "repeat_share": 0.25},
}


def small_study(**changes: Any) -> Study:
    """Return a small study with some fields changed; tables are merged."""
    data = dict(DATA)
    for name, value in changes.items():
        data[name] = {**data.get(name, {}), **value} if isinstance(value, dict) else value
    if "space" in changes:
        del data["parameter"]
    return Study.from_dict(data)


def step_time(job: Job) -> float:
    """Return what a step takes: more with the batch, and with workers to wait for."""
    return 1e-3 * (sum(job.device_batches) + 4 * job.n_workers)


def simulated(
    step_s: Callable[[Job], float] = step_time, **keywords: Any
) -> dict[str, SimulatedExecutor]:
    """Return the executors of a small study, none of which starts a process."""
    return {"torch": SimulatedExecutor(step_s, **keywords)}
