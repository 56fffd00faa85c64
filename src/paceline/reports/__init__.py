"""What was computed, shown as text that reads well at 80 columns."""

from paceline.reports._comparison import show_comparison
from paceline.reports._explanation import show_explanation
from paceline.reports._prediction import show_prediction
from paceline.reports._table import table

__all__ = ["show_comparison", "show_explanation", "show_prediction", "table"]
