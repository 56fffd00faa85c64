"""Time, traffic and memory of a step from first principles."""

from __future__ import annotations

from paceline.oracle._overlap import assign_buckets, communication_time, exposed_communication

__all__ = ["assign_buckets", "communication_time", "exposed_communication"]
