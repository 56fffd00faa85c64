"""Sums of products of powers: the posynomial family."""

from paceline.estimators._posynomial._expression import PosynomialExpression, PosynomialTerm
from paceline.estimators._posynomial._front import Front, FrontMember
from paceline.estimators._posynomial._regressor import PosynomialRegressor

__all__ = [
    "Front",
    "FrontMember",
    "PosynomialExpression",
    "PosynomialRegressor",
    "PosynomialTerm",
]
