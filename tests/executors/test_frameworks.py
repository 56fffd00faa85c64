"""TensorFlow, JAX, MXNet and Chainer keep the contract of executors, where installed."""

from __future__ import annotations

import importlib
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paceline import executors
from paceline.errors import DeviceMemoryError, ExecutionError
from paceline.executors import FrameworkExecutor, Job
from paceline.testing import ExecutorContract, contract_job

pytestmark = pytest.mark.slow
FRAMEWORKS = ("tensorflow", "jax", "mxnet", "chainer")
TIMEOUT_S = 120.0


def ready_executor(name: str, **settings: Any) -> FrameworkExecutor:
    executor = FrameworkExecutor(name, **settings)
    if executor.readiness():
        pytest.skip(f"{executor.readiness()} (paceline executors install {name})")
    return executor


class FrameworkContract(ExecutorContract):
    """What these four must do beyond the contract."""

    name: str

    @pytest.fixture
    def executor(self) -> FrameworkExecutor:
        return ready_executor(self.name)

    def test_adam_learns_too(self, executor: FrameworkExecutor) -> None:
        adam = {"name": "adam", "learning_rate": 0.01}
        job = contract_job([16, 16], n_warmup=0, n_steps=30, optimizer=adam)
        losses = np.mean([worker.losses for worker in self.run(executor, job).workers], axis=0)
        assert losses[-5:].mean() < 0.67 * losses[:5].mean()

    def test_dropout_drops(self, executor: FrameworkExecutor) -> None:
        network = contract_job([8]).network
        dropping = [{**op, "share": 0.5} if op["op"] == "dropout" else op for op in network]
        plain, dropped = (
            self.run(executor, contract_job([8, 8], network=each)).workers
            for each in (network, dropping)
        )
        assert np.isfinite(dropped[0].losses).all()
        assert not np.allclose(plain[0].losses, dropped[0].losses, rtol=1e-3)
        assert dropped[0].weights_digest == dropped[1].weights_digest

    def test_what_only_torch_builds_is_refused_and_workers_live_on(
        self, executor: FrameworkExecutor
    ) -> None:
        pool = self.pool(executor, 1)
        self.run(executor, contract_job([4]))
        before = pool.pids
        norm = {"op": "batch_norm", "name": "norm", "dims": 2, "features": 1}
        with pytest.raises(ExecutionError, match=r"batch_norm.*'torch'"):
            self.run(executor, contract_job([4], network=[norm]))
        assert pool.pids == before and pool.is_alive

    def test_the_worker_that_takes_too_much_memory_is_named(
        self, executor: FrameworkExecutor
    ) -> None:
        wide = {**contract_job([1]).network[0], "out": 128}
        flat = {"op": "flatten", "name": "flat"}
        out = {"op": "linear", "name": "out", "in": 128 * 64 * 64, "out": 4, "bias": True}
        sample = {"shape": [1, 64, 64], "n_classes": 4}
        job = contract_job([1, 1024], network=[wide, flat, out], sample=sample)
        with executor.open(2, memory_bytes=1_500_000_000) as pool:
            with pytest.raises(DeviceMemoryError, match=r"Worker 1 .* bytes of 1500000000"):
                pool.run(job, TIMEOUT_S)
            assert pool.run(contract_job([4, 4]), TIMEOUT_S).step_s

    @pytest.mark.parametrize("end", ["close", "kill"])
    def test_no_child_of_a_worker_is_left_running(
        self, executor: FrameworkExecutor, end: str
    ) -> None:
        mark = uuid.uuid4().hex
        pool = ready_executor(self.name, environment={"PACELINE_TEST_MARK": mark}).open(2)
        try:
            assert len(marked(mark)) >= 2
        finally:
            getattr(pool, end)()
        assert gone(mark)


class TestTensorflow(FrameworkContract):
    name = "tensorflow"


class TestJax(FrameworkContract):
    name = "jax"

    def test_the_next_processes_find_the_programs_of_the_last(self, tmp_path: Path) -> None:
        executor = ready_executor("jax", environment={"TMPDIR": str(tmp_path)})
        programs, digests = [], set()
        for _ in range(2):
            with executor.open(2) as pool:
                workers = pool.run(contract_job([8, 8]), TIMEOUT_S).workers
            digests |= {worker.weights_digest for worker in workers}
            programs.append(sorted(path.name for path in tmp_path.glob("paceline-jax-*/*-cache")))
        assert len(digests) == 1 and len(programs[0]) >= 2  # at least a step for each worker
        assert programs[0] == programs[1]


class TestMxnet(FrameworkContract):
    name = "mxnet"


class TestChainer(FrameworkContract):
    name = "chainer"


def marked(mark: str) -> list[int]:
    """Return all processes that were started with a mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def gone(mark: str) -> bool:
    """Whether all marked processes end; those of a killed parent need a moment."""
    end = time.monotonic() + 10
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.05)
    return not marked(mark)


def layer(op: str, name: str, **keys: Any) -> Mapping[str, Any]:
    names = {"n_in": "in", "n_out": "out"}
    return {"op": op, "name": name, **{names.get(key, key): value for key, value in keys.items()}}


def odd_network(dims: int) -> Sequence[Mapping[str, Any]]:
    """Return every operation with its unusual keys; 9 pixels on an axis become 4."""
    return [
        layer("conv", "c", dims=dims, n_in=2, n_out=3, kernel=4, stride=1, padding=[1, 2])
        | {"bias": False},
        layer("activation", "gelu", function="gelu"),
        layer("pool", "p", dims=dims, kernel=3, stride=2, padding=[1, 1], kind="max"),
        layer("activation", "sigmoid", function="sigmoid"),
        layer("pool", "q", dims=dims, kernel=2, stride=1, padding=[0, 0], kind="average"),
        layer("flatten", "f"),
        layer("linear", "l", n_in=3 * 4**dims, n_out=3, bias=True),
    ]


def odd_jobs() -> list[Job]:
    """Return jobs that a framework with another layout or rounding would do otherwise."""
    autoencoder = [
        layer("conv", "a", dims=2, n_in=2, n_out=2, kernel=3, stride=1, padding=[1, 1])
        | {"bias": True},
        layer("activation", "tanh", function="tanh"),
    ]
    settings: Mapping[str, Any] = {"n_warmup": 1, "n_steps": 3, "n_phase_steps": 2}
    sgd = {"name": "sgd", "learning_rate": 0.5}
    flat, solid = ({"shape": [2] + [9] * dims, "n_classes": 3} for dims in (2, 3))
    return [
        contract_job([6], network=odd_network(2), sample=flat, optimizer=sgd, **settings),
        contract_job([6], network=odd_network(3), sample=solid, optimizer=sgd, **settings),
        contract_job([6], network=autoencoder, sample=flat, loss="mse", optimizer=sgd, **settings),
    ]


@pytest.fixture(scope="module")
def losses_by_torch() -> Iterator[list[list[float]]]:
    with pytest.MonkeyPatch.context() as patch:
        # files of workers import their neighbours by bare names
        patch.syspath_prepend(str(Path(executors.__file__).parent / "workers"))
        yield [reference_losses(job) for job in odd_jobs()]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_framework_computes_what_torch_computes(
    name: str, losses_by_torch: list[list[float]]
) -> None:
    with ready_executor(name).open(1) as pool:
        for job, expected in zip(odd_jobs(), losses_by_torch, strict=True):
            losses = pool.run(job, TIMEOUT_S).workers[0].losses
            np.testing.assert_allclose(losses, expected, rtol=1e-3)


def reference_losses(job: Job) -> list[float]:
    """Train with torch, here, from the weights that the four start with."""
    torch = pytest.importorskip("torch")
    passes = importlib.import_module("passes")
    plain = job.to_dict()
    samples, losses = passes.load_samples(plain), []
    weights = {
        name: torch.tensor(weight, requires_grad=True)
        for name, weight in passes.initial_weights(plain)
    }
    optimizer = torch.optim.SGD(weights.values(), lr=job.optimizer["learning_rate"])
    for step in range(job.n_warmup + job.n_steps + job.n_phase_steps):
        start, count = step * job.device_batches[0], job.device_batches[0]
        pixels = np.frombuffer(samples.read(start, count), np.uint8).astype(np.float32) / 255
        inputs = torch.tensor(pixels.reshape(count, *samples.shape))
        loss = reference_loss(job, weights, inputs, list(samples.labels(start, count)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def reference_loss(job: Job, weights: Any, inputs: Any, labels: list[int]) -> Any:
    import torch
    from torch.nn import functional as F  # noqa: N812

    x = inputs
    for op in job.network:
        name, pair = op["name"], (weights.get(op["name"] + ".weight"),)
        if op["op"] in ("conv", "linear"):
            pair = (*pair, weights.get(name + ".bias"))
        if op["op"] == "conv":
            x = F.pad(x, tuple(op["padding"]) * op["dims"])
            x = (F.conv2d if op["dims"] == 2 else F.conv3d)(x, *pair, stride=op["stride"])
        elif op["op"] == "linear":
            x = F.linear(x, *pair)
        elif op["op"] == "pool":
            kind = {"max": "max", "average": "avg"}[op["kind"]]
            pool = getattr(F, f"{kind}_pool{op['dims']}d")
            x = pool(x, op["kernel"], op["stride"], op["padding"][0])
        elif op["op"] == "flatten":
            x = x.flatten(1)
        else:
            x = getattr(F, op["function"], getattr(torch, op["function"], None))(x)
    if job.loss == "mse":
        return F.mse_loss(x.flatten(1), inputs.flatten(1))
    return F.cross_entropy(x, torch.tensor(labels))
