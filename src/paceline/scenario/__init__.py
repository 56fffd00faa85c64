"""Scenarios: a network on a cluster under a strategy with a batch."""

from __future__ import annotations

from paceline.scenario._scenario import Scenario
from paceline.scenario._strategy import DEGREES, SCHEDULES, Strategy

__all__ = ["DEGREES", "SCHEDULES", "Scenario", "Strategy"]
