"""Tables like 3.2 to 3.5 of the thesis, from one's own runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators._epoch_regression import fit_epoch_regression
from paceline.estimators._imbalance import lif_by_step, lif_over_run, standard_deviation
from paceline.estimators._phase_rows import COMM_PHASES
from paceline.estimators._phases import PhaseTable
from paceline.estimators._speedup import measure_overlap

# network, framework, number of workers
StudyKey = tuple[str, str, int]
PhaseStudy = Mapping[StudyKey, PhaseTable | Sequence[PhaseTable]]


def phase_table_3_2(study: PhaseStudy, n_workers: int = 1) -> pd.DataFrame:
    """Return mean and standard deviation of every phase and of the step, like table 3.2.

    Columns: ``network``, ``framework``, ``phase``, ``mean_s``, ``sd_s``, over the steps of all
    repeats and workers. A phase that a framework cannot separate has no row; ``step`` is the
    step without overlap, so it is what the phases add up to.
    """
    rows = []
    for (network, framework, n), tables in _runs(study):
        if n != n_workers:
            continue
        for phase in dict.fromkeys(phase for table in tables for phase in table.phases):
            times = np.concatenate([t.of_phase(phase).ravel() for t in tables])
            rows.append((network, framework, phase, *_mean_sd(times)))
        steps = np.concatenate([t.unoverlapped_s() for t in tables])
        rows.append((network, framework, "step", *_mean_sd(steps)))
    return pd.DataFrame(rows, columns=["network", "framework", "phase", "mean_s", "sd_s"])


def aggregation_3_3(study: PhaseStudy) -> pd.DataFrame:
    """Return the aggregation time on several workers, like table 3.3.

    Columns: ``network``, ``framework``, ``n_workers``, ``mean_s``, ``sd_s`` (wait + transfer),
    ``wait_s``, ``transfer_s``, and ``hidden_s`` (not a number where no overlapped steps were
    timed).
    """
    rows = []
    for (network, framework, n), tables in _runs(study):
        if n == 1:
            continue
        comm = np.concatenate([t.of_phases(COMM_PHASES).mean(axis=1) for t in tables])
        parts = {f"{p}_s": np.mean([t.of_phase(p).mean() for t in tables]) for p in COMM_PHASES}
        mean_s, sd_s = _mean_sd(comm)
        row = {"network": network, "framework": framework, "n_workers": n}
        rows.append(row | {"mean_s": mean_s, "sd_s": sd_s, **parts, "hidden_s": _hidden(tables)})
    return pd.DataFrame(rows)


def lif_3_4(study: PhaseStudy) -> pd.DataFrame:
    """Return the load imbalance factor on several workers, like table 3.4.

    Columns: ``network``, ``framework``, ``n_workers``, ``mean``, ``sd`` (over steps),
    ``lif_run`` (all steps together) and ``problem`` (why there is none).
    """
    rows = []
    for (network, framework, n), tables in _runs(study):
        if n == 1:
            continue
        row = {"network": network, "framework": framework, "n_workers": n}
        try:
            mean, sd = _mean_sd(np.concatenate([lif_by_step(t) for t in tables]))
            run = float(np.mean([lif_over_run(t) for t in tables]))
            rows.append(row | {"mean": mean, "sd": sd, "lif_run": run, "problem": ""})
        except InvalidInputError as error:  # a framework that cannot separate waiting
            nothing = float("nan")
            rows.append(
                row | {"mean": nothing, "sd": nothing, "lif_run": nothing, "problem": str(error)}
            )
    return pd.DataFrame(rows)


def regression_3_5(study: PhaseStudy, n_samples: int) -> pd.DataFrame:
    """Return the regression (3.9) of every network and framework, like table 3.5.

    Every repeat of every number of workers is one row of its fit.

    Parameters
    ----------
    study
        Runs, with overlapped steps and known `device_batches`.
    n_samples
        Samples of an epoch: an epoch takes ceil(n_samples / global_batch) steps.

    Returns
    -------
    DataFrame
        ``network``, ``framework``, the fields of `EpochRegression`, and ``problem``: why there
        is no fit, such as saturation.
    """
    groups: dict[tuple[str, str], list[tuple[int, PhaseTable]]] = {}
    for (network, framework, n), tables in _runs(study):
        groups.setdefault((network, framework), []).extend((n, table) for table in tables)
    rows = []
    for (network, framework), runs in groups.items():
        row: dict[str, object] = {"network": network, "framework": framework}
        try:
            rows.append(row | _regression(runs, n_samples) | {"problem": ""})
        except InvalidInputError as error:
            rows.append(row | {"n_rows": len(runs), "problem": str(error)})
    return pd.DataFrame(rows)


def epoch_time_s(table: PhaseTable, n_samples: int) -> float:
    """Return the time of an epoch: its steps, the last one whole, at the mean overlapped step."""
    if not table.global_batch:
        raise InvalidInputError("`device_batches` must be known for an epoch time, but got none.")
    return float(table.overlapped_s().mean()) * math.ceil(n_samples / table.global_batch)


def _regression(runs: Sequence[tuple[int, PhaseTable]], n_samples: int) -> dict[str, object]:
    fit = fit_epoch_regression(
        [n for n, _ in runs],
        [float(lif_by_step(table).mean()) for _, table in runs],
        [epoch_time_s(table, n_samples) for _, table in runs],
    )
    return fit.to_dict()


def _runs(study: PhaseStudy) -> Iterator[tuple[StudyKey, list[PhaseTable]]]:
    for key, tables in study.items():
        repeats = [tables] if isinstance(tables, PhaseTable) else list(tables)
        if any(table.n_workers != key[2] for table in repeats):
            raise InvalidInputError(
                f"Runs of {key} must have {key[2]} workers, but got "
                f"{', '.join(str(t.n_workers) for t in repeats)}."
            )
        yield key, repeats


def _hidden(tables: Sequence[PhaseTable]) -> float:
    timed = [table for table in tables if table.step_s and table.step_s[0]]
    return float(np.mean([measure_overlap(t).hidden_s for t in timed])) if timed else float("nan")


def _mean_sd(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), standard_deviation(values)
