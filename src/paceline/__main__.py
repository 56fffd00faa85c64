"""Run Paceline as ``python -m paceline``."""

from paceline.cli import main

main()
