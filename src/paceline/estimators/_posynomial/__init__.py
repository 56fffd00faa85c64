"""Sums of products of powers: the posynomial family."""

from paceline.estimators._posynomial._choice_rows import MIN_GROUPS, choice_folds, labels_of
from paceline.estimators._posynomial._composed import Beyond, Pair
from paceline.estimators._posynomial._expression import PosynomialExpression, PosynomialTerm
from paceline.estimators._posynomial._front import Front, FrontMember
from paceline.estimators._posynomial._problem import MAX_POWER
from paceline.estimators._posynomial._regressor import PosynomialRegressor
from paceline.estimators._posynomial._rows import Layout, layout_of

__all__ = [
    "MAX_POWER",
    "MIN_GROUPS",
    "Beyond",
    "Front",
    "FrontMember",
    "Layout",
    "Pair",
    "PosynomialExpression",
    "PosynomialRegressor",
    "PosynomialTerm",
    "choice_folds",
    "labels_of",
    "layout_of",
]
