"""Paceline: predict, explain and plan the pace of distributed deep-learning training.

The names below are loaded at first use, so that ``import paceline`` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Comparison": "paceline.estimators",
    "Dataset": "paceline.dataset",
    "Explanation": "paceline.explainers",
    "FitResult": "paceline.estimators",
    "GenericExpression": "paceline.estimators",
    "GenericRegressor": "paceline.estimators",
    "Observation": "paceline.dataset",
    "Parameter": "paceline.space",
    "PowerLawRegressor": "paceline.estimators",
    "Report": "paceline.reports",
    "Space": "paceline.space",
    "TimeBasis": "paceline.dataset",
    "compare": "paceline.estimators",
    "explain": "paceline.explainers",
    "fit": "paceline.estimators",
    "load_dataset": "paceline.dataset",
    "load_fit": "paceline.estimators",
    "load_space": "paceline.space",
    "report": "paceline.reports",
}

__all__ = [
    "Comparison",
    "Dataset",
    "Explanation",
    "FitResult",
    "GenericExpression",
    "GenericRegressor",
    "Observation",
    "Parameter",
    "PowerLawRegressor",
    "Report",
    "Space",
    "TimeBasis",
    "__version__",
    "compare",
    "explain",
    "fit",
    "load_dataset",
    "load_fit",
    "load_space",
    "report",
]

if TYPE_CHECKING:
    from paceline.dataset import Dataset, Observation, TimeBasis, load_dataset
    from paceline.estimators import (
        Comparison,
        FitResult,
        GenericExpression,
        GenericRegressor,
        PowerLawRegressor,
        compare,
        fit,
        load_fit,
    )
    from paceline.explainers import Explanation, explain
    from paceline.reports import Report, report
    from paceline.space import Parameter, Space, load_space


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'paceline' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
