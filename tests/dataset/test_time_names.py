"""What names of columns say of times and rates."""

from __future__ import annotations

import pytest

from paceline.dataset._outcome_names import is_outcome
from paceline.dataset._time_names import rate_of, rate_share, unit_in


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("step time (ms)", "milliseconds"),
        ("step_ms", "milliseconds"),
        ("stepTimeMs", "milliseconds"),
        ("step ms", "milliseconds"),
        ("latency_ms_p50", "milliseconds"),
        ("H100 time [ms]", "milliseconds"),
        ("milliseconds per step", "milliseconds"),
        ("time[us]", "microseconds"),
        ("time (µs)", "microseconds"),
        ("time (μs)", "microseconds"),
        ("kernel_ns", "nanoseconds"),
        ("epoch_time_s", "seconds"),
        ("s/it", "seconds"),
        ("epoch (min)", "minutes"),
        ("epoch_minutes", "minutes"),
        ("images/min", "minutes"),
        ("images_per_min", "minutes"),
        ("run_hours", "hours"),
        ("samples_per_sec_per_gpu", "seconds"),
        ("step_time", None),
        ("time_min", None),
        ("h100_time", None),
        ("items", None),
        ("throughput", None),
        ("ms or us", None),
    ],
)
def test_a_name_tells_the_unit_of_its_time(name: str, unit: str | None) -> None:
    found = unit_in(name)
    assert (found.word if found else None) == unit


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("tokens_per_sec", "tokens"),
        ("tok/s", "tokens"),
        ("throughput (tokens/s)", "tokens"),
        ("token_throughput", "tokens"),
        ("it/s", "steps"),
        ("steps_per_second", "steps"),
        ("samples_per_sec", "samples"),
        ("images/sec", "samples"),
        ("samples/s/step", "samples"),
        ("step_throughput", "samples"),
        ("throughput", "samples"),
    ],
)
def test_a_name_says_what_a_rate_counts(name: str, counted: str) -> None:
    assert rate_of(name) == counted


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("samples_per_sec_per_gpu", "device"),
        ("tokens/s/GPU", "device"),
        ("images/sec per device", "device"),
        ("tokens/s/node", "node"),
        ("gpu_samples_per_s", None),
        ("samples_per_sec", None),
        ("throughput", None),
    ],
)
def test_a_name_says_whose_rate_it_is(name: str, share: str | None) -> None:
    assert rate_share(name) == share


@pytest.mark.parametrize(
    "name",
    [
        "time",
        "time_ms",
        "wall_time_s",
        "stepTime",
        "batch_time",
        "time_per_step",
        "duration",
        "p50_latency",
        "elapsed_s",
        "runtime",
        "step_ms",
        "step_ms_p50",
        "ms/step",
        "s/it",
        "fwd_us",
        "gpu_hours",
        "throughput",
        "samples/s",
        "it/s",
        "images_per_second",
        "tokens_per_s",
        "tokens/s/GPU",
        "samples per min",
        "achieved_tflops_per_s",
        "speedup",
        "mfu",
        "MFU (%)",
        "gpu_util",
        "GPU utilization",
        "scaling_efficiency",
    ],
)
def test_a_name_says_that_a_column_is_an_outcome(name: str) -> None:
    assert is_outcome(name)


@pytest.mark.parametrize(
    "name",
    [
        "power_limit_w",
        "batch_size",
        "batch_norm",
        "learning_rate",
        "sampling_rate",
        "n_steps",
        "time_steps",
        "timesteps",
        "time_embedding_dim",
        "time_limit_s",
        "audio_duration_s",
        "window_ms",
        "link_latency_us",
        "network_latency",
        "bandwidth_gb_per_s",
        "link_gb/s",
        "HBM GB/s",
        "peak_tflops_per_s",
        "price_per_hour",
        "requests_per_s",
        "frames_per_second",
        "gpu_memory_utilization",
        "steps_per_epoch",
        "model_gflop_per_token",
        "gpus_per_node",
        "img_h",
        "kernel_s",
        "sms",
        "efficiency",
        "status",
        "params_m",
        "torch",
    ],
)
def test_other_names_are_no_outcomes(name: str) -> None:
    assert not is_outcome(name)
