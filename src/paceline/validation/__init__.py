"""Published figures with their sources, and what replaying them gives."""

from paceline.validation._checks import Check, CheckKind
from paceline.validation._facts import (
    Contradiction,
    DerivedTime,
    Facts,
    list_tables,
    load_facts,
    published_expression,
)
from paceline.validation._printed import Column, Figure, Table
from paceline.validation._ranges import time_range_s
from paceline.validation._study import Study, generate_study
from paceline.validation._validate import Validation, validate

__all__ = [
    "Check",
    "CheckKind",
    "Column",
    "Contradiction",
    "DerivedTime",
    "Facts",
    "Figure",
    "Study",
    "Table",
    "Validation",
    "generate_study",
    "list_tables",
    "load_facts",
    "published_expression",
    "time_range_s",
    "validate",
]
