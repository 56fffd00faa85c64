"""What was measured: observations, datasets, their files, and how tables are read."""

from __future__ import annotations

from paceline.dataset._basis import TimeBasis
from paceline.dataset._cells import level_name
from paceline.dataset._csv import read_csv, read_table
from paceline.dataset._dataset import Dataset
from paceline.dataset._observation import Observation

__all__ = [
    "Dataset",
    "Observation",
    "TimeBasis",
    "level_name",
    "read_csv",
    "read_table",
]
