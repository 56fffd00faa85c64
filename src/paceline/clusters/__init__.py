"""Devices, links and machines, and what a collective between them costs."""

from __future__ import annotations

from paceline.clusters._cluster import PRECISIONS, Cluster, Device, Level, Link

__all__ = ["PRECISIONS", "Cluster", "Device", "Level", "Link"]
