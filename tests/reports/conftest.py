"""Small studies with a model of every form, and a campaign with phases."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paceline.dataset import Dataset
from paceline.estimators import FitResult, fit
from paceline.executors import SimulatedExecutor
from paceline.measurement import PhaseRun, load_phase_runs, load_study, measure

SCRIPT = "<script>alert('name')</script>"
LEVEL = "</script><img src=x onerror=alert(1)>"


def planted(n_rows: int = 90, *, layers: str = "layers", level: str = "adam") -> Dataset:
    """Two terms, a categorical factor and 3 % noise; some rows are repeats."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            layers: rng.integers(1, 9, n_rows).astype(float),
            "optimizer": rng.choice([level, "sgd"], n_rows),
            "n_devices": rng.choice([1.0, 2.0, 4.0], n_rows),
            "device_batch": rng.choice([8.0, 16.0, 32.0, 64.0], n_rows),
        }
    )
    work = 1e-4 * frame[layers] * frame["device_batch"]
    waiting = 2e-3 * (frame["n_devices"] - 1)
    factor = np.where(frame["optimizer"] == level, 1.2, 1.0)
    frame["time_s"] = (1e-3 + work + waiting) * factor * np.exp(0.03 * rng.normal(size=n_rows))
    return Dataset.from_frame(
        frame,
        intrinsic=[layers, "optimizer"],
        extrinsic=["n_devices", "device_batch"],
        time_per="step",
        batch="device_batch",
    )


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    return planted()


@pytest.fixture(scope="session")
def fits(dataset: Dataset) -> dict[str, FitResult]:
    return {
        "generic": fit(dataset, form="generic", n_seeds=2, n_bootstrap=5),
        "posynomial": fit(dataset, form="posynomial"),
        "corrected": fit(dataset, form="corrected"),
    }


@pytest.fixture(scope="session")
def phases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[PhaseRun, ...]]:
    """Chapter 3's study by workers that pretend; worker 1 takes half as long again."""
    path = tmp_path_factory.mktemp("phases") / "chapter3.db"
    executor = SimulatedExecutor(
        lambda job: 1e-4 * job.device_batches[0],
        transfer_s=lambda job: 2e-4 if job.n_workers > 1 else 0.0,
        noise=0.02,
        imbalance={1: 1.5},
    )
    measure(load_study("chapter3").reduced(), path, executors={"torch": executor})
    return path, load_phase_runs(path)
