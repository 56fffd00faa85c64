"""Peak memory by worker of the schedules of a pipeline, and what holding less costs in time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from paceline.scenario import Strategy
from plans_timing import jobs_of, plan_one, quick, this_machine, time_jobs

NETWORK = ("resnet18", {"image_size": 64, "filters": 16, "n_classes": 10})
BATCH, STAGES, MICRO_BATCHES = 128, 4, 16
MOST = 1.1  # of the memory of any worker under 1F1B


def schedules() -> dict[str, Any]:
    """Return the peak of tensor storage by worker, and the step, of every schedule."""
    name, values = NETWORK
    base = Strategy(pipeline=STAGES, micro_batches=MICRO_BATCHES)
    cluster = replace(this_machine(), n_devices=0)  # more workers than cores: only memory counts
    cut = plan_one(name, values, base, BATCH, cluster)
    strategies = {
        "gpipe": replace(base, schedule="gpipe"),
        "1f1b": base,
        "1f1b, recompute": replace(base, recompute=True),
        "unlocked": replace(base, schedule="unlocked"),
        "unlocked, recompute": replace(base, schedule="unlocked", recompute=True),
    }
    plans = {label: replace(cut, strategy=s) for label, s in strategies.items()}  # the same cut
    timed = time_jobs(jobs_of(plans, 2 if quick() else 5, 3), 1 if quick() else 3)
    usual = [w.tensor_peak_bytes for w in timed["1f1b"].records[0].workers]
    print(f"{name}, {STAGES} stages, {MICRO_BATCHES} micro-batches of {BATCH // MICRO_BATCHES}")
    figures = {}
    for label, found in timed.items():
        peaks = [worker.tensor_peak_bytes for worker in found.records[0].workers]
        share = max(peak / other for peak, other in zip(peaks, usual, strict=True))
        price = found.step_s / timed["1f1b"].step_s
        figures[label] = {"peaks": peaks, "of_1f1b": share, "step_of_1f1b": price}
        shown = " ".join(f"{peak / 1e6:6.2f}" for peak in peaks)
        verdict = "within" if share <= MOST else "above"
        print(
            f"  {label:20} {shown} MB; at most {share:.2f} x 1F1B's ({verdict} {MOST}), "
            f"step {price:.2f} x",
            flush=True,
        )
    return figures
