"""What was computed, shown: as text that reads well at 80 columns, and as one HTML page.

Names are loaded at first use: a verb that shows the oracle's answers loads no estimators.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from paceline.reports._table import definitions, table

if TYPE_CHECKING:
    from paceline.reports._comparison import show_comparison
    from paceline.reports._explanation import show_explanation
    from paceline.reports._given import plan_timeline, survey_study
    from paceline.reports._images import save_scaling_images
    from paceline.reports._oracle import short_label, show_knees, show_survey
    from paceline.reports._phase_tables import show_phase_explanation
    from paceline.reports._phases import (
        show_aggregation,
        show_imbalance,
        show_lif,
        show_phases,
        show_regression,
        show_shares,
        show_speedup,
        show_waiting,
    )
    from paceline.reports._plan import show_gantt, show_parameters, show_plan
    from paceline.reports._prediction import show_prediction, show_run
    from paceline.reports._report import Chart, Report, Section, Table, report
    from paceline.reports._run import show_plan_run

_HOMES = {
    "_comparison": ("show_comparison",),
    "_explanation": ("show_explanation",),
    "_given": ("plan_timeline", "survey_study"),
    "_images": ("save_scaling_images",),
    "_oracle": ("short_label", "show_knees", "show_survey"),
    "_phase_tables": ("show_phase_explanation",),
    "_phases": (
        "show_aggregation",
        "show_imbalance",
        "show_lif",
        "show_phases",
        "show_regression",
        "show_shares",
        "show_speedup",
        "show_waiting",
    ),
    "_plan": ("show_gantt", "show_parameters", "show_plan"),
    "_prediction": ("show_prediction", "show_run"),
    "_report": ("Chart", "Report", "Section", "Table", "report"),
    "_run": ("show_plan_run",),
}

__all__ = [
    "Chart",
    "Report",
    "Section",
    "Table",
    "definitions",
    "plan_timeline",
    "report",
    "save_scaling_images",
    "short_label",
    "show_aggregation",
    "show_comparison",
    "show_explanation",
    "show_gantt",
    "show_imbalance",
    "show_knees",
    "show_lif",
    "show_parameters",
    "show_phase_explanation",
    "show_phases",
    "show_plan",
    "show_plan_run",
    "show_prediction",
    "show_regression",
    "show_run",
    "show_shares",
    "show_speedup",
    "show_survey",
    "show_waiting",
    "survey_study",
    "table",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
