"""A worker of MXNet: gluon's autograd, gradients through the key-value store `dist_sync`."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.executors.workers import passes, protocol
else:
    import protocol

    if __name__ == "__main__":  # before MXNet is imported, which may print
        protocol.take_over_stdout()
    import passes

import numpy as np

_PARENT_DEATH_SIGNAL = 1  # Linux: prctl's PR_SET_PDEATHSIG


def _environment() -> dict[str, str]:
    """Return how ps-lite's processes find each other, from torchrun's variables."""
    host = os.environ["MASTER_ADDR"]
    own = {
        "DMLC_PS_ROOT_URI": host,
        "DMLC_PS_ROOT_PORT": os.environ["MASTER_PORT"],
        "DMLC_NUM_WORKER": str(protocol.world_size()),
        "DMLC_NUM_SERVER": "1",
        # several engine threads would let workers on one machine take each other's cores
        "MXNET_CPU_WORKER_NTHREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }
    if host.startswith("127."):
        own["DMLC_NODE_HOST"] = host  # or ps-lite looks for a network card
    return own


def _die_with_parent() -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _start_servers() -> list[subprocess.Popen[bytes]]:
    """Start ps-lite's scheduler and server: importing MXNet in such a role serves."""
    return [
        subprocess.Popen(
            [sys.executable, "-c", "import mxnet"],
            env={**os.environ, "DMLC_ROLE": role},
            stdin=subprocess.DEVNULL,
            preexec_fn=_die_with_parent,
        )
        for role in ("scheduler", "server")
    ]


_servers: list[subprocess.Popen[bytes]] = []
if __name__ == "__main__" and protocol.world_size() > 1:
    os.environ.update(_environment())
    if protocol.rank() == 0:
        _servers = _start_servers()
    os.environ["DMLC_ROLE"] = "worker"  # read when MXNet is imported

import mxnet as mx  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402

_stores: list[Any] = []  # the one key-value store, which must live as long as the process
_jobs = itertools.count()  # keys cannot be used again, so that every job has its own


def _activation(op: dict[str, Any], x: Any) -> Any:
    if op["function"] == "gelu":
        return mx.nd.LeakyReLU(x, act_type="gelu")
    return mx.nd.Activation(x, act_type=op["function"])


def _conv(op: dict[str, Any], x: Any, weights: dict[str, Any]) -> Any:
    bias = weights.get(op["name"] + ".bias")
    before, after = op["padding"]
    if before != after:
        x = mx.nd.pad(x, "constant", (0, 0, 0, 0, *(before, after) * op["dims"]))
        before = 0
    return mx.nd.Convolution(
        x,
        weights[op["name"] + ".weight"],
        *([] if bias is None else [bias]),
        kernel=(op["kernel"],) * op["dims"],
        stride=(op["stride"],) * op["dims"],
        pad=(before,) * op["dims"],
        num_filter=op["out"],
        no_bias=bias is None,
    )


def _linear(op: dict[str, Any], x: Any, weights: dict[str, Any]) -> Any:
    bias = weights.get(op["name"] + ".bias")
    return mx.nd.FullyConnected(
        x,
        weights[op["name"] + ".weight"],
        *([] if bias is None else [bias]),
        num_hidden=op["out"],
        no_bias=bias is None,
        flatten=False,
    )


def _pool(op: dict[str, Any], x: Any) -> Any:
    return mx.nd.Pooling(
        x,
        kernel=(op["kernel"],) * op["dims"],
        stride=(op["stride"],) * op["dims"],
        pad=(op["padding"][0],) * op["dims"],
        pool_type={"max": "max", "average": "avg"}[op["kind"]],
    )


def _apply(network: list[dict[str, Any]], weights: dict[str, Any], x: Any) -> Any:
    kinds: dict[str, Callable[..., Any]] = {
        "conv": lambda op, x: _conv(op, x, weights),
        "linear": lambda op, x: _linear(op, x, weights),
        "pool": _pool,
        "activation": _activation,
        "dropout": lambda op, x: mx.nd.Dropout(x, p=op["share"]) if op["share"] else x,
        "flatten": lambda op, x: mx.nd.Flatten(x),
    }
    for op in network:
        x = kinds[op["op"]](op, x)
    return x


def _optimizer(settings: dict[str, Any]) -> Any:
    return mx.optimizer.create(settings["name"], learning_rate=settings["learning_rate"])


class _MxnetTrainer(passes.Trainer):
    def __init__(self, job: dict[str, Any]) -> None:
        self._job = job
        self._share = protocol.weight_of(job, protocol.rank())
        mx.random.seed(job["seed"] + 7919 * protocol.rank())  # workers drop other units
        pairs = passes.initial_weights(job)
        self._weights = {name: mx.nd.array(weight) for name, weight in pairs}
        self._variables = list(self._weights.values())
        for weight in self._variables:
            weight.attach_grad()
        self._updater = mx.optimizer.get_updater(_optimizer(job["optimizer"]))
        self._store: Any = _stores[0] if _stores else None
        number = next(_jobs)
        self._keys = [f"{number}.{name}" for name, _ in pairs]
        if self._store is not None:
            self._store.init(self._keys, self._variables)
        self._losses = gluon.loss.SoftmaxCrossEntropyLoss()
        self._scaled: Any = None
        self._last_loss: Any = None

    def put(self, inputs: np.ndarray, labels: np.ndarray) -> Any:
        batch = mx.nd.array(inputs), mx.nd.array(labels)
        mx.nd.waitall()
        return batch

    def _loss(self, inputs: Any, labels: Any) -> Any:
        outputs = _apply(self._job["network"], self._weights, inputs)
        if self._job["loss"] == "mse":
            return mx.nd.square(mx.nd.Flatten(outputs) - mx.nd.Flatten(inputs)).mean()
        return self._losses(outputs, labels).mean()

    def _run_forward(self, batch: Any) -> None:
        with autograd.record():
            self._last_loss = self._loss(*batch)
            self._scaled = self._last_loss * self._share

    def _sum(self) -> None:
        """Let the engine send every gradient as soon as it is there, the first layers first."""
        for place, (key, weight) in enumerate(zip(self._keys, self._variables)):  # noqa: B905
            self._store.push(key, weight.grad, priority=-place)
            self._store.pull(key, out=weight.grad, priority=-place)

    def _change(self) -> None:
        for place, weight in enumerate(self._variables):
            self._updater(place, weight.grad, weight)

    def step(self, batch: Any) -> float:
        self._run_forward(batch)
        self._scaled.backward()
        if self._store is not None:
            self._sum()
        self._change()
        mx.nd.waitall()
        return self.loss()

    def forward(self, batch: Any) -> None:
        self._run_forward(batch)
        mx.nd.waitall()

    def backward(self) -> None:
        self._scaled.backward()
        mx.nd.waitall()

    def wait(self) -> None:
        if self._store is not None:
            self._store._barrier()

    def transfer(self) -> None:
        if self._store is not None:
            self._sum()
            mx.nd.waitall()

    def update(self) -> None:
        self._change()
        mx.nd.waitall()

    def loss(self) -> float:
        return float(self._last_loss.asscalar())

    def weights(self) -> list[np.ndarray]:
        return [weight.asnumpy() for weight in self._variables]


def _leave() -> None:
    """Take leave of the servers, which end when all workers have; end them if they do not."""
    _stores.clear()
    for server in _servers:
        try:
            server.wait(5)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


if __name__ == "__main__":
    if protocol.world_size() > 1:
        _stores.append(mx.kv.create("dist_sync"))
    protocol.serve(
        "mxnet",
        {"mxnet": mx.__version__, "numpy": np.__version__},
        lambda job: passes.run_job(job, _MxnetTrainer),
    )
    _leave()
