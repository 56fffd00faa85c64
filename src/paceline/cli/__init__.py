"""The command line: one file per verb, no logic."""

from paceline.cli._main import main

__all__ = ["main"]
