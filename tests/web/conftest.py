"""A folder with data, models and a plan, and the application that serves it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient

from paceline.dataset import Dataset, save_store
from paceline.estimators import fit, save_fit
from paceline.scenario import Plan, Stage, Strategy, save_plan
from paceline.web import Settings, make_app
from paceline.workloads import load_workload

TOKEN = "the-token-of-the-tests"
EVIL = "<img src=x onerror=alert(1)>"


def times(n: int = 80, seed: int = 0) -> pd.DataFrame:
    """Steps that take c + a * batch / devices, with a little noise."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "n_devices": rng.choice([1, 2, 4, 8], n),
            "global_batch": rng.choice([32, 64, 128, 256], n),
            "width": rng.choice([16, 32, 64], n),
            "optimizer": rng.choice(["adam", "sgd"], n),
        }
    )
    work = 1e-5 * frame["global_batch"] * frame["width"] / frame["n_devices"]
    frame["time_s"] = (0.002 + work) * np.exp(rng.normal(0, 0.02, n))
    return frame


def two_stage_plan() -> Plan:
    graph = load_workload("lenet5").graph({})
    n = len(graph.layers)
    names = [layer.name for layer in graph.layers]
    return Plan(
        workload={"name": "lenet5", "values": {}},
        fingerprint=graph.fingerprint,
        cluster="dgx-1",
        strategy=Strategy(pipeline=2, micro_batches=4),
        global_batch=64,
        stages=(
            Stage(first=0, end=3, names=(names[0], names[2])),
            Stage(first=3, end=n, names=(names[3], names[-1])),
        ),
        placement=((0, 1),),
        replica_batches=(64,),
        predicted={"step_s": 0.01, "forward_s": 0.003, "backward_s": 0.006, "memory_bytes": 1e7},
        reasons=("It was made by hand.",),
    )


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files, made once."""
    folder = tmp_path_factory.mktemp("made")
    frame = times()
    frame.to_csv(folder / "times.csv", index=False)
    dataset = Dataset.from_frame(frame, time_per="step", batch="global_batch")
    save_store(dataset, folder / "times.db")
    save_fit(fit(dataset, form="posynomial", n_seeds=1), folder / "times.json")
    save_fit(fit(dataset, form="generic", n_seeds=1), folder / "generic.json")
    evil = Dataset.from_frame(frame.rename(columns={"width": EVIL}))
    save_fit(fit(evil, form="generic", n_seeds=1), folder / "evil.json")
    save_plan(two_stage_plan(), folder / "plan.json")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of the files, of which a secret lies outside."""
    (tmp_path / "secret.json").write_text(json.dumps({"schema": "paceline/model/1"}))
    shutil.copytree(made, tmp_path / "served")
    return tmp_path / "served"


@pytest.fixture
def settings(folder: Path) -> Settings:
    return Settings(folder=folder, token=TOKEN, max_upload_bytes=200_000)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    headers = {"X-Paceline-Token": TOKEN}
    with TestClient(make_app(settings), base_url="http://127.0.0.1", headers=headers) as client:
        yield client
