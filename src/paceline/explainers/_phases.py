"""What the phases of a campaign say: tables like 3.2 to 3.5, speedup, where imbalance arises."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators import (
    PhaseTable,
    SpeedupReport,
    aggregation_3_3,
    lif_3_4,
    lif_by_phase,
    phase_table_3_2,
    predict_steps,
    regression_3_5,
    report_speedup,
)
from paceline.explainers._imbalance import ImbalanceReading, read_imbalance
from paceline.measurement import PhaseRun

_Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseExplanation:
    """Phases per network, framework and number of workers, and what follows from them.

    Every table has the columns ``network`` and ``framework``, and all but `regression` have
    ``n_workers``.

    Parameters
    ----------
    named
        What the parts of a network's name stand for.
    phases
        Like table 3.2: ``phase``, ``mean_s``, ``sd_s``.
    steps
        ``equation``, ``step_s``: the step that (3.1) to (3.5) predict, beside the measured ones.
    aggregation
        Like table 3.3.
    speedup
        Fields of `SpeedupReport`, or the ``problem`` why there is none.
    lif
        Like table 3.4.
    lif_phases
        ``phase``, ``lif``, ``lif_sd``, ``mean_s``.
    regression
        Like table 3.5: (3.9) with ``r2``, ``adjusted_r2``, ``degrees_of_freedom``.
    imbalance
        Where it arises, per run and process life.
    """

    named: tuple[str, ...]
    phases: pd.DataFrame
    steps: pd.DataFrame
    aggregation: pd.DataFrame
    speedup: pd.DataFrame
    lif: pd.DataFrame
    lif_phases: pd.DataFrame
    regression: pd.DataFrame
    imbalance: tuple[tuple[_Key, ImbalanceReading | str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; what is not known is None."""
        tables = ("phases", "steps", "aggregation", "speedup", "lif", "lif_phases", "regression")
        plain: dict[str, Any] = {name: _plain(getattr(self, name)) for name in tables}
        readings = [
            {"network": network, "framework": framework, "n_workers": n}
            | ({"problem": reading} if isinstance(reading, str) else reading.to_dict())
            for (network, framework, n), reading in self.imbalance
        ]
        return {"named": list(self.named), **plain, "imbalance": readings}


def explain_phases(runs: Sequence[PhaseRun]) -> PhaseExplanation:
    """Say what the phases of a campaign's runs mean.

    Parameters
    ----------
    runs
        What `load_phase_runs` gives. Lives and repeats of a network, framework and number of
        workers count as repeats.
    """
    study = _study(runs)
    counts = sorted({n for _, _, n in study})
    return PhaseExplanation(
        named=("workload", *runs[0].values) if runs else (),
        phases=pd.concat([phase_table_3_2(study, n).assign(n_workers=n) for n in counts]),
        steps=_per_key(study, lambda tables: predict_steps(PhaseTable.join(tables))),
        aggregation=aggregation_3_3(study),
        speedup=pd.DataFrame(_speedups(study)),
        lif=lif_3_4(study),
        lif_phases=_per_key(study, _lif_phases, least=2),
        regression=_regressions(runs, study),
        imbalance=tuple(
            (key, _reading(table))
            for key, tables in study.items()
            for table in tables
            if key[2] > 1
        ),
    )


def _study(runs: Sequence[PhaseRun]) -> dict[_Key, list[PhaseTable]]:
    study: dict[_Key, list[PhaseTable]] = {}
    for run in runs:
        study.setdefault((run.network, run.executor, run.n_workers), []).extend(run.lives)
    return study


def _per_key(study: dict[_Key, list[PhaseTable]], make: Any, least: int = 1) -> pd.DataFrame:
    parts = [
        make(tables).assign(network=network, framework=framework, n_workers=n)
        for (network, framework, n), tables in study.items()
        if n >= least
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _lif_phases(tables: Sequence[PhaseTable]) -> pd.DataFrame:
    try:
        return lif_by_phase(PhaseTable.join(tables))[["phase", "lif", "lif_sd", "mean_s"]]
    except InvalidInputError:  # waiting is inside own work: `lif` says so
        return pd.DataFrame(columns=["phase", "lif", "lif_sd", "mean_s"])


def _speedups(study: dict[_Key, list[PhaseTable]]) -> Iterator[dict[str, Any]]:
    for (network, framework, n), tables in study.items():
        if n == 1:
            continue
        row = {"network": network, "framework": framework, "n_workers": n}
        one = study.get((network, framework, 1))
        if one is None:
            yield row | {"problem": "There is no run on one worker to compare with."}
            continue
        try:
            report = report_speedup(PhaseTable.join(one), PhaseTable.join(tables))
            yield row | _flat(report) | {"problem": ""}
        except InvalidInputError as error:
            yield row | {"problem": str(error)}


def _flat(report: SpeedupReport) -> dict[str, Any]:
    names = ("measured", "exposed_shared", "exposed", "printed", "iucc")
    found = {name: getattr(report, name) for name in names}
    return found | {"hidden_share": report.overlap.hidden_share}


def _regressions(runs: Sequence[PhaseRun], study: dict[_Key, list[PhaseTable]]) -> pd.DataFrame:
    n_samples = {run.network: run.n_samples for run in runs}
    parts = []
    for network, n in n_samples.items():
        own = {key: tables for key, tables in study.items() if key[0] == network}
        if n:
            parts.append(regression_3_5(own, n))
        else:
            reason = "The samples of an epoch must be known, but they are not."
            names = dict.fromkeys(key[1] for key in own)
            parts.append(
                pd.DataFrame({"network": network, "framework": list(names), "problem": reason})
            )
    return pd.concat(parts, ignore_index=True)


def _reading(table: PhaseTable) -> ImbalanceReading | str:
    try:
        return read_imbalance(table)
    except InvalidInputError as error:
        return str(error)


def _plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): _cell(value) for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _cell(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
