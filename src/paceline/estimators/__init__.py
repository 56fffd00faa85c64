"""Expressions of the time, fitted, compared and saved."""

from paceline.estimators._black_boxes import BlackBoxRegressor
from paceline.estimators._comparison import Comparison, ComparisonRow, compare
from paceline.estimators._expression import GenericExpression, Term
from paceline.estimators._fit import FORMS, fit
from paceline.estimators._folds import folds_of, holdout_of
from paceline.estimators._generic import GenericRegressor
from paceline.estimators._measured import MeasuredRange
from paceline.estimators._members import default_members
from paceline.estimators._metrics import Scores, noise_floor, score
from paceline.estimators._path import RegularizationPath, regularization_path
from paceline.estimators._power_law import PowerLawRegressor
from paceline.estimators._problem import Penalty, Problem
from paceline.estimators._result import FitResult
from paceline.estimators._saved import fit_to_dict, load_fit, save_fit
from paceline.estimators._stability import Progress, Spread, Stability, study_stability

__all__ = [
    "FORMS",
    "BlackBoxRegressor",
    "Comparison",
    "ComparisonRow",
    "FitResult",
    "GenericExpression",
    "GenericRegressor",
    "MeasuredRange",
    "Penalty",
    "PowerLawRegressor",
    "Problem",
    "Progress",
    "RegularizationPath",
    "Scores",
    "Spread",
    "Stability",
    "Term",
    "compare",
    "default_members",
    "fit",
    "fit_to_dict",
    "folds_of",
    "holdout_of",
    "load_fit",
    "noise_floor",
    "regularization_path",
    "save_fit",
    "score",
    "study_stability",
]
