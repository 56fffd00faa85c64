"""What was computed, shown as text that reads well at 80 columns."""

from paceline.reports._comparison import show_comparison
from paceline.reports._explanation import show_explanation
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
from paceline.reports._prediction import show_prediction, show_run
from paceline.reports._table import definitions, table

__all__ = [
    "definitions",
    "short_label",
    "show_aggregation",
    "show_comparison",
    "show_explanation",
    "show_imbalance",
    "show_knees",
    "show_lif",
    "show_phase_explanation",
    "show_phases",
    "show_prediction",
    "show_regression",
    "show_run",
    "show_shares",
    "show_speedup",
    "show_survey",
    "show_waiting",
    "table",
]
