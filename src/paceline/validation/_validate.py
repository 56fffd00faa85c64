"""The verb `validate`: replay what has been published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from paceline.estimators import Progress
from paceline.validation._arithmetic import (
    check_bounds,
    check_counts,
    check_ranges,
    check_repeats,
    check_spaces,
    check_squares,
    check_worst,
)
from paceline.validation._chapter3 import check_chapter3
from paceline.validation._checks import Check
from paceline.validation._contradictions import check_contradictions
from paceline.validation._counts import check_paleo, check_parameters
from paceline.validation._facts import Facts, load_facts
from paceline.validation._gpipe import check_gpipe
from paceline.validation._hkbu_series import check_hkbu_series
from paceline.validation._paradl_forms import check_paradl_forms
from paceline.validation._paradl_series import check_paradl_series
from paceline.validation._paradl_table import check_paradl_table
from paceline.validation._readings import check_readings
from paceline.validation._recovery import check_recovery
from paceline.validation._study import PLANTABLE

SCHEMA = "paceline/validation-result/1"

_FACT_STEPS: dict[str, Callable[[Facts], list[Check]]] = {
    "constants counted": check_counts,
    "parameters and spaces": check_spaces,
    "errors and their squares": check_squares,
    "figures printed twice": check_repeats,
    "largest errors": check_worst,
    "bounds": check_bounds,
    "extreme times": check_ranges,
    "phases of a step": check_chapter3,
    "known contradictions": check_contradictions,
    "readings": check_readings,
}

_ORACLE_STEPS: dict[str, Callable[[], list[Check]]] = {
    "numbers of parameters": check_parameters,
    "ParaDL's forms": check_paradl_forms,
    "ParaDL's table VIII": check_paradl_table,
    "ParaDL's runs": check_paradl_series,
    "data parallelism on slow networks": check_hkbu_series,
    "pipelines": check_gpipe,
    "Paleo's formulas": check_paleo,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """All checks and whether they passed."""

    checks: tuple[Check, ...]

    def __str__(self) -> str:
        return f"{len(self.checks) - self.n_failed} of {len(self.checks)} checks passed"

    @property
    def n_failed(self) -> int:
        """Number of checks that did not pass."""
        return sum(not check.passed for check in self.checks)

    @property
    def passed(self) -> bool:
        """Whether every check passed, and there was one."""
        return bool(self.checks) and self.n_failed == 0

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        return {
            "schema": SCHEMA,
            "passed": self.passed,
            "n_failed": self.n_failed,
            "checks": [check.to_dict() for check in self.checks],
        }


def validate(progress: Progress | None = None) -> Validation:
    """Replay the published figures: arithmetic, readings, contradictions, accuracy, recovery.

    Parameters
    ----------
    progress
        Called before every step with the steps done, their number, and the name of the next;
        and once more at the end.

    Returns
    -------
    Validation
    """
    return run_checks(load_facts(), progress)


def run_checks(facts: Facts, progress: Progress | None = None) -> Validation:
    """Run every check on the given facts."""
    steps = _steps(facts)
    checks: list[Check] = []
    for i, (name, step) in enumerate(steps.items()):
        if progress is not None:
            progress(i, len(steps), name)
        checks += step()
    if progress is not None:
        progress(len(steps), len(steps), "done")
    return Validation(checks=tuple(checks))


def _steps(facts: Facts) -> dict[str, Callable[[], list[Check]]]:
    steps: dict[str, Callable[[], list[Check]]] = {
        name: partial(step, facts) for name, step in _FACT_STEPS.items()
    }
    steps.update(_ORACLE_STEPS)
    for framework in PLANTABLE:
        steps[f"recovery of {framework}"] = partial(check_recovery, framework)
    return steps
