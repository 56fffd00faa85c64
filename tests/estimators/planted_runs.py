"""Runs of workers whose phases are planted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import paceline.estimators as e

BASE = {"io": 1e-4, "h2d": 2e-4, "md": 1e-4, "forward": 4e-3, "backward": 8e-3, "update": 1e-3}


def records(
    own: list[list[dict[str, float]]], transfer: float = 2e-3, hidden: float = 0.0
) -> list[dict[str, Any]]:
    """Return workers' records of given own work; they wait for each other and transfer."""
    n_workers = len(own)
    for phases in zip(*own, strict=True):
        sums = [sum(p.values()) for p in phases]
        for p, total in zip(phases, sums, strict=True):
            p |= {"wait": max(sums) - total, "transfer": transfer if n_workers > 1 else 0.0}
    return [
        {"rank": i, "phases": steps, "step_s": [sum(p.values()) - hidden for p in steps]}
        for i, steps in enumerate(own)
    ]


def run(
    n_workers: int,
    *,
    n_steps: int = 30,
    excess: Mapping[tuple[int, str], float] | None = None,
    jitter: float = 0.0,
    seed: int = 0,
    device_batch: int = 16,
    **more: float,
) -> e.PhaseTable:
    rng = np.random.default_rng(seed)
    own = [
        [
            {
                p: t + (excess or {}).get((i, p), 0.0) + t * jitter * rng.random()
                for p, t in BASE.items()
            }
            for _ in range(n_steps)
        ]
        for i in range(n_workers)
    ]
    return e.PhaseTable.from_workers(records(own, **more), [device_batch] * n_workers)
