"""A worker of TensorFlow: `MultiWorkerMirroredStrategy` with a loop of its own."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.executors.workers import passes, protocol
else:
    import protocol

    if __name__ == "__main__":  # before TensorFlow is imported, which prints
        protocol.take_over_stdout()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import passes

import keras
import numpy as np
import tensorflow as tf

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "gelu": tf.nn.gelu,
}


def _flat(x: Any) -> Any:
    """Flatten channel by channel, as frameworks do that keep channels first."""
    rank = len(x.shape)
    if rank > 2:
        x = tf.transpose(x, [0, rank - 1, *range(1, rank - 1)])
    return tf.reshape(x, [x.shape[0], -1])


def _padded(op: dict[str, Any], x: Any, value: float = 0.0) -> Any:
    if not any(op["padding"]):
        return x
    return tf.pad(x, [[0, 0], *[op["padding"]] * op["dims"], [0, 0]], constant_values=value)


def _conv(op: dict[str, Any], x: Any, weights: dict[str, Any]) -> Any:
    strides = [op["stride"]] * op["dims"]
    kernel = weights[op["name"] + ".weight"]
    return _biased(op, tf.nn.convolution(_padded(op, x), kernel, strides, "VALID"), weights)


def _linear(op: dict[str, Any], x: Any, weights: dict[str, Any]) -> Any:
    return _biased(op, tf.matmul(x, weights[op["name"] + ".weight"]), weights)


def _biased(op: dict[str, Any], x: Any, weights: dict[str, Any]) -> Any:
    return tf.nn.bias_add(x, weights[op["name"] + ".bias"]) if op.get("bias", True) else x


def _pool(op: dict[str, Any], x: Any) -> Any:
    kind, value = ("MAX", x.dtype.min) if op["kind"] == "max" else ("AVG", 0.0)
    sizes = [op["kernel"]] * op["dims"], [op["stride"]] * op["dims"]
    return tf.nn.pool(_padded(op, x, value), sizes[0], kind, sizes[1], "VALID")


def _apply(network: list[dict[str, Any]], weights: dict[str, Any], x: Any) -> Any:
    kinds: dict[str, Callable[..., Any]] = {
        "conv": lambda op, x: _conv(op, x, weights),
        "linear": lambda op, x: _linear(op, x, weights),
        "pool": _pool,
        "activation": lambda op, x: _ACTIVATIONS[op["function"]](x),
        "dropout": lambda op, x: tf.nn.dropout(x, op["share"]) if op["share"] else x,
        "flatten": lambda op, x: _flat(x),
    }
    for op in network:
        x = kinds[op["op"]](op, x)
    return x


def _loss(job: dict[str, Any], weights: dict[str, Any], batch: Any) -> Any:
    inputs, labels = batch
    outputs = _apply(job["network"], weights, inputs)
    if job["loss"] == "mse":
        return tf.reduce_mean(tf.square(_flat(outputs) - _flat(inputs)))
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs))


def _optimizer(settings: dict[str, Any]) -> Any:
    """Return an optimizer that leaves the gradients as they are: they are sums already."""
    rate = settings["learning_rate"]
    if settings["name"] == "sgd":
        optimizer = keras.optimizers.SGD(rate)
    else:
        optimizer = keras.optimizers.Adam(rate, epsilon=1e-8)
    # Keras 3 has no public way to say so (Keras 2: skip_gradients_aggregation)
    assert callable(optimizer._all_reduce_sum_gradients)
    optimizer._all_reduce_sum_gradients = lambda pairs: pairs
    return optimizer


class _TensorflowTrainer(passes.Trainer):
    def __init__(self, job: dict[str, Any], strategy: Any) -> None:
        self._job, self._strategy = job, strategy
        self._n_workers = protocol.world_size()
        self._share = protocol.weight_of(job, protocol.rank())
        tf.random.set_seed(job["seed"] + 7919 * protocol.rank())  # workers drop other units
        with strategy.scope():
            self._weights = {
                name: tf.Variable(passes.channels_last(w))
                for name, w in passes.initial_weights(job)
            }
            self._variables = list(self._weights.values())
            self._optimizer = _optimizer(job["optimizer"])
            self._optimizer.build(self._variables)
        self._whole = self._everywhere(self._step)
        self._sum = self._everywhere(self._summed)
        self._change = self._everywhere(self._apply_gradients)
        self._forward = tf.function(lambda *batch: _loss(job, self._weights, batch))
        self._tape: Any = None
        self._gradients: Any = None
        self._last_loss: Any = None
        self._scaled: Any = None

    def _everywhere(self, function: Callable[..., Any]) -> Any:
        return tf.function(lambda *parts: self._strategy.run(function, args=parts))

    def _step(self, inputs: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = _loss(self._job, self._weights, (inputs, labels))
            scaled = loss * self._share
        gradients = tape.gradient(scaled, self._variables)
        self._apply_gradients(*self._summed(*gradients))
        return loss

    def _summed(self, *parts: Any) -> Any:
        context = tf.distribute.get_replica_context()
        placed = [tf.identity(part) for part in parts]  # arguments have no device, which it needs
        return context.all_reduce(tf.distribute.ReduceOp.SUM, placed)

    def _apply_gradients(self, *gradients: Any) -> None:
        self._optimizer.apply(gradients, self._variables)

    def put(self, inputs: np.ndarray, labels: np.ndarray) -> Any:
        inputs = np.ascontiguousarray(np.moveaxis(inputs, 1, -1)) if inputs.ndim > 2 else inputs
        return tf.constant(inputs), tf.constant(labels)

    def step(self, batch: Any) -> float:
        return float(self._whole(*batch).numpy())

    def forward(self, batch: Any) -> None:
        with tf.GradientTape() as self._tape:
            self._last_loss = self._forward(*batch)
            self._scaled = self._last_loss * self._share
        self._scaled.numpy()

    def backward(self) -> None:
        self._gradients = self._tape.gradient(self._scaled, self._variables)
        _finish(self._gradients)

    def wait(self) -> None:
        if self._n_workers > 1:
            _finish(self._sum(tf.zeros([1])))

    def transfer(self) -> None:
        if self._n_workers > 1:
            self._gradients = self._sum(*self._gradients)
            _finish(self._gradients)

    def update(self) -> None:
        self._change(*self._gradients)
        self._variables[-1].numpy()

    def loss(self) -> float:
        return float(self._last_loss.numpy())

    def weights(self) -> list[np.ndarray]:
        return [passes.channels_first(w.numpy()) for w in self._variables]


def _finish(tensors: Any) -> None:
    for tensor in tensors:
        tensor.numpy()


def _addresses() -> list[str]:
    """Return the address of every worker's server: each finds a port, the first tells all."""
    host, own = os.environ["MASTER_ADDR"], _own_address()
    meeting = (host, int(os.environ["MASTER_PORT"]))
    if protocol.rank() == 0:
        return _gather(meeting, own)
    with _connected(meeting) as link, link.makefile("rw") as lines:
        lines.write(json.dumps([protocol.rank(), own]) + "\n")
        lines.flush()
        return list(json.loads(lines.readline()))


def _own_address() -> str:
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    return f"{os.environ.get('PACELINE_HOST', os.environ['MASTER_ADDR'])}:{port}"


def _gather(meeting: tuple[str, int], own: str) -> list[str]:
    found, links = {0: own}, []
    with socket.create_server(meeting) as server:
        while len(found) < protocol.world_size():
            link = server.accept()[0].makefile("rw")
            rank, address = json.loads(link.readline())
            found[rank] = address
            links.append(link)
    addresses = [found[rank] for rank in sorted(found)]
    for link in links:
        with link:
            link.write(json.dumps(addresses) + "\n")
    return addresses


def _connected(meeting: tuple[str, int]) -> socket.socket:
    end = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(meeting)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)  # the first worker is not there yet


def _strategy() -> Any:
    """Return what spreads a step over the workers; it must come before anything else of TF."""
    tf.get_logger().setLevel("ERROR")  # it warns of functions traced anew: every job has its own
    n_threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    tf.config.threading.set_intra_op_parallelism_threads(n_threads)
    # collectives block a thread each while the rest of the step goes on
    tf.config.threading.set_inter_op_parallelism_threads(n_threads + 1)
    if protocol.world_size() == 1:
        return tf.distribute.get_strategy()
    task = {"type": "worker", "index": protocol.rank()}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": _addresses()}, "task": task})
    return tf.distribute.MultiWorkerMirroredStrategy()


if __name__ == "__main__":
    _joined = _strategy()
    protocol.serve(
        "tensorflow",
        {"tensorflow": tf.__version__, "keras": keras.__version__, "numpy": np.__version__},
        lambda job: passes.run_job(job, lambda job: _TensorflowTrainer(job, _joined)),
    )
