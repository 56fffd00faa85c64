"""Time, traffic and memory of a step from first principles."""

from __future__ import annotations

__all__: list[str] = []
