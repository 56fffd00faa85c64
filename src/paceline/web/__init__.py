"""The local web application: studies, what-if questions, comparisons, the oracle and plans."""

from __future__ import annotations

from paceline.web._serve import make_app, serve
from paceline.web._settings import Settings

__all__ = ["Settings", "make_app", "serve"]
