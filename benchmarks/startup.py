"""How long a user waits for the command line."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from paceline.validation import generate_study

REPEATS = 7


def seconds_of(*command: str) -> list[float]:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "paceline", *command], check=True,
                       capture_output=True)  # fmt: skip
        times.append(time.perf_counter() - start)
    return times


def measure() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder) / "study.csv", Path(folder) / "model.json"
        generate_study(n_rows=1500).dataset.to_csv(data)
        runs = {
            "help": seconds_of("--help"),
            "fit_1500_rows": seconds_of(
                "fit", str(data), "--form", "generic", "--seeds", "1", "-o", str(model)
            ),
        }
    figures = {
        name: {"median_s": statistics.median(t), "min_s": min(t), "max_s": max(t)}
        for name, t in runs.items()
    }
    for name, f in figures.items():
        print(f"{name:15} median {f['median_s']:.2f} s  ({f['min_s']:.2f} to {f['max_s']:.2f})")
    return figures
