"""Run the benchmarks: print figures, write JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

PARTS = (
    "startup",
    "solvers",
    "recovery",
    "stability",
    "rows",
    "planted",
    "campaign",
    "adaptive",
    "oracle",
    "planning",
    "showing",
)
# need the network, others' figures, or a quiet machine for long
ON_REQUEST = ("extra_p", "transfer", "calibration", "plans")
RESULTS = Path(__file__).parent / "results"


def describe_machine() -> dict[str, object]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "n_cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS, choices=[*PARTS, *ON_REQUEST, []])
    chosen = parser.parse_args().parts or PARTS
    RESULTS.mkdir(exist_ok=True)
    for part in chosen:
        print(f"\n== {part}", flush=True)
        figures = importlib.import_module(part).measure()
        record = {"schema": "paceline/benchmark/1", "part": part, **describe_machine()}
        path = RESULTS / f"{part}.json"
        path.write_text(json.dumps({**record, "figures": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
