"""The numbers behind every picture of a report, as plain data and without a plot."""

from paceline.reports.views._model import (
    FrontPoint,
    Share,
    StrengthPath,
    view_front,
    view_path,
    view_shares,
    view_stability,
)
from paceline.reports.views._oracle import (
    PassBar,
    PlanView,
    StrategyPoint,
    SurveyView,
    view_plan,
    view_survey,
)
from paceline.reports.views._phases import (
    PhaseBar,
    SpeedupCurve,
    WorkerBar,
    view_phases,
    view_speedup,
    view_workers,
)
from paceline.reports.views._provenance import view_provenance
from paceline.reports.views._rows import (
    Agreement,
    ResidualGroup,
    Residuals,
    predict_rows,
    view_agreement,
    view_residuals,
)
from paceline.reports.views._scaling import MeasuredAt, ScalingCurve, view_scaling

__all__ = [
    "Agreement",
    "FrontPoint",
    "MeasuredAt",
    "PassBar",
    "PhaseBar",
    "PlanView",
    "ResidualGroup",
    "Residuals",
    "ScalingCurve",
    "Share",
    "SpeedupCurve",
    "StrategyPoint",
    "StrengthPath",
    "SurveyView",
    "WorkerBar",
    "predict_rows",
    "view_agreement",
    "view_front",
    "view_path",
    "view_phases",
    "view_plan",
    "view_provenance",
    "view_residuals",
    "view_scaling",
    "view_shares",
    "view_speedup",
    "view_stability",
    "view_survey",
    "view_workers",
]
