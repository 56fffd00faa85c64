"""From a trial to the job that its workers are given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from paceline.errors import InvalidInputError
from paceline.executors import Job
from paceline.measurement._own_module import sample_of
from paceline.measurement._plan import PlannedTrial
from paceline.measurement._study import Study
from paceline.workloads import ModuleWorkload, ScriptWorkload, Workload, load_workload

# samples of an epoch of the real data, whether they or generated ones of their shape are used
_N_SAMPLES = {"mnist": 60_000, "fashion-mnist": 60_000, "cifar10": 50_000, "adni": 431}
_DEFAULT_N_SAMPLES = 60_000


def load_workloads(study: Study) -> dict[str, Workload]:
    """Return the workloads of a study by name.

    Raises
    ------
    UnknownNameError
        When a workload is not known, or has no parameter of a name that the study varies.
    """
    if study.module:
        return {study.workloads[0]: _own_module(study)}
    if study.executors == ("command",):
        return {name: ScriptWorkload(name, study.space.parameters) for name in study.workloads}
    workloads = {name: load_workload(name) for name in study.workloads}
    first = {p.name: p.values[0] for p in study.sampled_space.parameters}
    for workload in workloads.values():
        workload.complete(first)  # refuses unknown names before any run
    return workloads


def _own_module(study: Study) -> ModuleWorkload:
    module, space = study.module, study.sampled_space
    sample = sample_of(module)
    if study.executors != ("torch",):
        raise InvalidInputError(
            "A module of your own must be run by `torch`, "
            f"but the study names {', '.join(study.executors)}."
        )
    return ModuleWorkload(
        module["file"],
        module["name"],
        parameters=[space[name] for name in space.intrinsic],
        sample=sample,
        loss=module.get("loss", "cross_entropy"),
    )


def build_job(study: Study, workload: Workload, trial: PlannedTrial) -> Job:
    """Return the job of a trial."""
    batches = share_batch(trial.values, trial.n_workers)
    keywords: dict[str, Any] = {**workload.job_keywords(trial.values), "device_batches": batches}
    if trial.executor == "command":
        # one command, however many workers it starts; nobody else needs the values
        keywords |= {"device_batches": [sum(batches)], "values": script_values(trial.values)}
    if study.data:
        keywords["data"] = dict(study.data)
    return Job(**keywords, **_steps(study, batches), seed=study.random_state)


def script_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what can stand in a command line: the trial, its devices and both batches."""
    n_devices = int(values.get("n_devices", 1))
    batches = share_batch(values, n_devices)
    return {
        "n_devices": n_devices,
        "device_batch": max(batches),
        "global_batch": sum(batches),
        **values,
    }


def share_batch(values: Mapping[str, Any], n_workers: int) -> list[int]:
    """Return the samples of each worker in a step.

    Examples
    --------
    >>> share_batch({"global_batch": 10}, 3)
    [4, 3, 3]
    """
    if "device_batch" in values:
        return [int(values["device_batch"])] * n_workers
    share, rest = divmod(int(values["global_batch"]), n_workers)
    return [share + (worker < rest) for worker in range(n_workers)]


def count_samples(study: Study, values: Mapping[str, Any]) -> int:
    """Return the samples of an epoch of a trial."""
    if study.n_samples:
        return study.n_samples
    if study.protocol.epochs:
        return _data_samples(study)
    return _N_SAMPLES.get(str(values.get("dataset", "")), _DEFAULT_N_SAMPLES)


def _steps(study: Study, batches: list[int]) -> dict[str, Any]:
    protocol = study.protocol
    counts = {
        "n_warmup": protocol.n_warmup,
        "n_steps": protocol.n_steps,
        "n_phase_steps": protocol.n_phase_steps,
    }
    if protocol.epochs:
        # the thesis' protocol: the first epoch is dropped, the others are timed
        epoch = math.ceil(_data_samples(study) / sum(batches))
        timed = epoch * (protocol.epochs - 1)
        counts = {"n_warmup": epoch, "n_steps": timed, "n_phase_steps": timed}
    return {**counts, "per_layer": protocol.per_layer}


def _data_samples(study: Study) -> int:
    n_samples = study.data.get("n_samples", study.n_samples)
    if not isinstance(n_samples, int) or n_samples < 1:
        raise InvalidInputError(
            "`data.n_samples` must be given for a protocol of epochs, but it is missing."
        )
    return n_samples
