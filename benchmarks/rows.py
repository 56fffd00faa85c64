"""Time and memory of a fit as the rows grow; each size in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

SIZES = (10_000, 100_000, 1_000_000)

PROBE = """
import json, resource, time
from paceline.estimators import GenericRegressor, score
from paceline.validation import generate_study
study = generate_study(n_rows={n_rows}, noise=0.05)
data = study.dataset
start = time.perf_counter()
model = GenericRegressor(data.extrinsic, data.categorical).fit(data.X, data.y)
seconds = time.perf_counter() - start
gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
error = score(study.true_s[:5000], model.predict(data.X.iloc[:5000])).mape
print(json.dumps(dict(n_rows={n_rows}, fit_s=seconds, peak_gib=gib, mape_to_truth=error)))
"""


def measure() -> list[dict[str, float]]:
    figures = []
    for n_rows in SIZES:
        command = [sys.executable, "-c", PROBE.format(n_rows=n_rows)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        figures.append(json.loads(done.stdout))
        print(
            "{n_rows:>9} rows: {fit_s:6.2f} s, peak {peak_gib:.2f} GiB with the data, "
            "{mape_to_truth:.2e} from the truth".format(**figures[-1]),
            flush=True,
        )
    return figures
