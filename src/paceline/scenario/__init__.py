"""Scenarios and plans: a network on a cluster under a strategy, and how it is to be run."""

from __future__ import annotations

from paceline.scenario._plan import PLAN_SCHEMA, Plan, Stage, load_plan, save_plan
from paceline.scenario._scenario import Scenario
from paceline.scenario._strategy import DEGREES, SCHEDULES, Strategy
from paceline.scenario._table import StrategyTable

__all__ = [
    "DEGREES",
    "PLAN_SCHEMA",
    "SCHEDULES",
    "Plan",
    "Scenario",
    "Stage",
    "Strategy",
    "StrategyTable",
    "load_plan",
    "save_plan",
]
