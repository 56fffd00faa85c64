"""Every workload is trained for real, small, by PyTorch's worker; the others refuse most."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.workloads.small import SMALL

from paceline.executors import Job, load_executor
from paceline.workloads import list_workloads, load_workload

DATA = {"kind": "generated", "n_samples": 4}
WORKERS = Path(__file__).parents[2] / "src" / "paceline" / "executors" / "workers"


@pytest.fixture(scope="module")
def pool() -> Any:
    pytest.importorskip("torch", reason="Try: pip install -c constraints.txt 'paceline[torch]'")
    with load_executor("torch").open(1) as pool:
        yield pool


def job(name: str, **changes: Any) -> Job:
    keywords = load_workload(name).job_keywords(SMALL[name])
    given = {"device_batches": [2], "n_warmup": 0, "n_steps": 2, "data": DATA, **changes}
    return Job(**keywords, **given)


@pytest.mark.parametrize("name", list_workloads())
def test_a_small_one_trains(name: str, pool: Any) -> None:
    worker = pool.run(job(name), 120.0).workers[0]
    assert len(worker.losses) == 2 and np.isfinite(worker.losses).all()


def test_a_tied_output_map_learns(pool: Any) -> None:
    worker = pool.run(job("gpt2", n_steps=30), 120.0).workers[0]
    assert worker.losses[0] == pytest.approx(np.log(64), rel=0.1)  # small weights: even odds
    assert np.mean(worker.losses[-5:]) < worker.losses[0]


EVERYWHERE = ("alexnet", "autoencoder", "lenet5", "mlp", "vgg16")


@pytest.mark.parametrize("name", list_workloads())
def test_other_frameworks_refuse_what_they_cannot_build(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(WORKERS))  # they import their neighbours by bare names
    passes, protocol = (importlib.import_module(n) for n in ("passes", "protocol"))
    plain = job(name).to_dict()
    if name in EVERYWHERE:
        passes.check(plain)
        return
    with pytest.raises(protocol.RefusedError, match=r"must .* on the executor 'torch'"):
        passes.check(plain)
