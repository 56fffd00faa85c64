"""What may be varied: parameters, the values they may take, and trials drawn from them."""

from __future__ import annotations

from paceline.space._designs import Trial
from paceline.space._parameter import Kind, Parameter, Role
from paceline.space._published import list_spaces, load_space
from paceline.space._space import Space

__all__ = ["Kind", "Parameter", "Role", "Space", "Trial", "list_spaces", "load_space"]
