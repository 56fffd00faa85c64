"""Expressions of the time, fitted, compared and saved."""

from paceline.estimators._black_boxes import BlackBoxRegressor
from paceline.estimators._comparison import compare
from paceline.estimators._comparison_rows import Comparison, ComparisonRow
from paceline.estimators._corrected import CorrectedRegressor
from paceline.estimators._epoch_regression import EpochRegression, fit_epoch_regression
from paceline.estimators._expression import GenericExpression, Term
from paceline.estimators._extra_p import ExtraPRegressor
from paceline.estimators._extra_p_terms import NormalForm
from paceline.estimators._feature_choice import add_features
from paceline.estimators._features import FEATURES, Features
from paceline.estimators._fit import fit
from paceline.estimators._folds import folds_of, holdout_of
from paceline.estimators._forms import FORMS
from paceline.estimators._generic import GenericRegressor
from paceline.estimators._imbalance import (
    lif_by_phase,
    lif_by_step,
    lif_over_run,
    load_imbalance_factor,
)
from paceline.estimators._measured import MeasuredRange
from paceline.estimators._members import default_members
from paceline.estimators._metrics import Scores, noise_floor, score
from paceline.estimators._path import RegularizationPath, regularization_path
from paceline.estimators._phase_rows import COMM_PHASES, OWN_PHASES, PHASES
from paceline.estimators._phase_study import (
    PhaseStudy,
    aggregation_3_3,
    epoch_time_s,
    lif_3_4,
    phase_table_3_2,
    regression_3_5,
)
from paceline.estimators._phases import PhaseTable, layer_coverage
from paceline.estimators._posynomial import (
    Beyond,
    Front,
    FrontMember,
    PosynomialExpression,
    PosynomialRegressor,
    PosynomialTerm,
)
from paceline.estimators._power_law import PowerLawRegressor
from paceline.estimators._problem import Penalty, Problem
from paceline.estimators._result import FitResult
from paceline.estimators._run_cost import Run, batch_notes, predict_run
from paceline.estimators._saved import fit_to_dict, load_fit, save_fit
from paceline.estimators._shares import (
    Shares,
    WorkerSpeed,
    equal_shares,
    propose_shares,
    worker_speeds,
)
from paceline.estimators._speedup import (
    Overlap,
    SpeedupReport,
    measure_overlap,
    predict_steps,
    report_speedup,
)
from paceline.estimators._stability import Progress, Spread, Stability, study_stability
from paceline.estimators._step_equations import (
    StepPhases,
    exposed_speedup,
    iucc_speedup,
    one_device_step_s,
    pipelined_step_s,
    printed_speedup,
    sgd_step_s,
    slowest_device_step_s,
    ssgd_step_s,
    weak_speedup,
)
from paceline.estimators._transfer import transfer_times
from paceline.estimators._waiting import extrapolate_waiting

__all__ = [
    "COMM_PHASES",
    "FEATURES",
    "FORMS",
    "OWN_PHASES",
    "PHASES",
    "Beyond",
    "BlackBoxRegressor",
    "Comparison",
    "ComparisonRow",
    "CorrectedRegressor",
    "EpochRegression",
    "ExtraPRegressor",
    "Features",
    "FitResult",
    "Front",
    "FrontMember",
    "GenericExpression",
    "GenericRegressor",
    "MeasuredRange",
    "NormalForm",
    "Overlap",
    "Penalty",
    "PhaseStudy",
    "PhaseTable",
    "PosynomialExpression",
    "PosynomialRegressor",
    "PosynomialTerm",
    "PowerLawRegressor",
    "Problem",
    "Progress",
    "RegularizationPath",
    "Run",
    "Scores",
    "Shares",
    "SpeedupReport",
    "Spread",
    "Stability",
    "StepPhases",
    "Term",
    "WorkerSpeed",
    "add_features",
    "aggregation_3_3",
    "batch_notes",
    "compare",
    "default_members",
    "epoch_time_s",
    "equal_shares",
    "exposed_speedup",
    "extrapolate_waiting",
    "fit",
    "fit_epoch_regression",
    "fit_to_dict",
    "folds_of",
    "holdout_of",
    "iucc_speedup",
    "layer_coverage",
    "lif_3_4",
    "lif_by_phase",
    "lif_by_step",
    "lif_over_run",
    "load_fit",
    "load_imbalance_factor",
    "measure_overlap",
    "noise_floor",
    "one_device_step_s",
    "phase_table_3_2",
    "pipelined_step_s",
    "predict_run",
    "predict_steps",
    "printed_speedup",
    "propose_shares",
    "regression_3_5",
    "regularization_path",
    "report_speedup",
    "save_fit",
    "score",
    "sgd_step_s",
    "slowest_device_step_s",
    "ssgd_step_s",
    "study_stability",
    "transfer_times",
    "weak_speedup",
    "worker_speeds",
]
