"""The verb `measure`: from a study to a dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from paceline.dataset import Dataset, read_observations, read_store
from paceline.errors import ExecutionError, InvalidInputError, UnknownNameError
from paceline.executors import BaseExecutor, ScriptExecutor, load_executor
from paceline.measurement._campaign import Campaign
from paceline.measurement._jobs import script_values
from paceline.measurement._local import run_local
from paceline.measurement._progress import ProgressCallback
from paceline.measurement._study import Study

ENGINES = ("local", "ray")


def measure(
    study: Study,
    path: str | Path,
    *,
    engine: str = "local",
    address: str | None = None,
    progress: ProgressCallback | None = None,
    should_stop: Callable[[], bool] | None = None,
    executors: Mapping[str, BaseExecutor] | None = None,
) -> Dataset:
    """Measure a study, or go on measuring it.

    Parameters
    ----------
    study
        What to measure.
    path
        The store of the campaign; when it holds a part of it already, the rest is measured.
    engine
        ``local``, or ``ray`` for trials as tasks of a Ray cluster.
    address
        Of the Ray cluster; None starts one on this machine.
    progress
        Called after every run.
    should_stop
        Asked before every run; the campaign stops cleanly when it returns true.
    executors
        Executors of your own, by the names that the study uses.

    Returns
    -------
    Dataset
        Steps of all trials measured so far that did not fail.

    Raises
    ------
    ExecutionError
        When the campaign ended without one successful trial; says the first reason.
    InvalidInputError
        When the file belongs to another campaign or study, or cannot be written.
    MissingDependencyError
        When the engine is not installed.

    Notes
    -----
    The time is that of a step: the median over the steady steps of all lives. The columns
    `n_samples` and `global_batch` give the time of an epoch, ceil(n_samples / global_batch)
    steps (``paceline fit --time-per epoch``);
    `minimum_s` is the shortest steady step. The provenance of an observation holds every raw
    time, the phases of every worker and the state of the machine, life by life.
    """
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    ready = ready_executors(study, executors or {})
    with Campaign(study, path) as campaign:
        if engine == "ray":
            from paceline.measurement._ray import run_ray

            run_ray(campaign, ready, address=address, progress=progress, should_stop=should_stop)
        else:
            run_local(campaign, ready, progress=progress, should_stop=should_stop)
    return _dataset(path)


def ready_executors(study: Study, given: Mapping[str, BaseExecutor]) -> dict[str, BaseExecutor]:
    """Return the executors of a study by name; one that is not ready is refused."""
    executors: dict[str, BaseExecutor] = {
        name: given[name] if name in given else _executor(study, name) for name in study.executors
    }
    for name, executor in executors.items():
        problem = executor.readiness()
        if problem:
            raise InvalidInputError(
                f"The executor {name!r} must be ready, but it is not: {problem}"
            )
    return executors


def _executor(study: Study, name: str) -> BaseExecutor:
    """Return an executor with what the study's table ``options`` says of it."""
    options = study.options.get(name, {})
    if not isinstance(options, Mapping):
        raise InvalidInputError(f"`options.{name}` must be a table, but got {options!r}.")
    if name == "command":
        script = ScriptExecutor(options)
        space = study.sampled_space
        script.check(script_values({p.name: p.values[0] for p in space.parameters}))
        return script
    for option in options:
        if option != "python":
            raise UnknownNameError(f"option of `{name}`", str(option), ("python",))
    return load_executor(name, python=options.get("python"))


def _dataset(path: str | Path) -> Dataset:
    observations = read_observations(path)
    if all(observation.failed for observation in observations):
        reasons = [observation.reason for observation in observations]
        first = f"; the first reason: {reasons[0]}" if reasons else ""
        raise ExecutionError(
            f"A campaign must have one successful trial, but all {len(reasons)} failed{first}"
        )
    return read_store(path)
