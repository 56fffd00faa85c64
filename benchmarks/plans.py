"""Plans as they are run: speed, memory, prediction and regret, on this machine.

Everything is measured in fresh processes, cases in turn, and the fastest counts. Run it on a
machine that does nothing else: ``OMP_NUM_THREADS=1 python benchmarks/run.py plans`` (some
40 minutes on two cores; with PACELINE_QUICK=1 a few, for trying out alone).
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import digits
import plans_memory
import plans_prediction
import plans_speed
from plans_timing import quick

PARTS = {
    "speed": plans_speed.two_workers,
    "planted": plans_speed.planted_unlocked,
    "hybrid": plans_speed.planted_hybrid,
    "predicted": plans_speed.predicted_speedups,
    "memory": plans_memory.schedules,
    "prediction": plans_prediction.predictions,
    "regret": plans_prediction.regrets,
    "digits": digits.measure,
}


def measure(parts: list[str] | None = None) -> dict[str, Any]:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"load {load:.1f}: these times are of a busy machine, and mean little")
    return {
        "quick": quick(),
        "load": load,
        **{part: _said(part) for part in parts or PARTS},
    }


def _said(part: str) -> Any:
    print(f"-- {part}", flush=True)
    return PARTS[part]()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    measure(parser.parse_args(sys.argv[1:]).parts)
