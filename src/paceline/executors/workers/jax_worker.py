"""A worker of JAX: one CPU or GPU per process, `shard_map` over processes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.executors.workers import jax_programs, passes, protocol
else:
    import protocol

    if __name__ == "__main__":  # before JAX is imported, which may print
        protocol.take_over_stdout()
    # XLA's own pool of threads does not heed OMP_NUM_THREADS
    os.environ.setdefault("NPROC", os.environ.get("OMP_NUM_THREADS", "1"))
    import jax_programs
    import passes

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import NamedSharding, PartitionSpec

_WORKERS = "workers"  # axis of the mesh: one device of every process
_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "gelu": partial(jax.nn.gelu, approximate=False),
}


def _flat(x: Any) -> Any:
    """Flatten channel by channel, as frameworks do that keep channels first."""
    return jnp.moveaxis(x, -1, 1).reshape(x.shape[0], -1)


def _conv(op: dict[str, Any], x: Any, weights: dict[str, Any]) -> Any:
    dims = op["dims"]
    layout = ("NHWC", "HWIO", "NHWC") if dims == 2 else ("NDHWC", "DHWIO", "NDHWC")
    x = jax.lax.conv_general_dilated(
        x,
        weights[op["name"] + ".weight"],
        [op["stride"]] * dims,
        [tuple(op["padding"])] * dims,
        dimension_numbers=layout,
    )
    return _biased(op, x, weights)


def _linear(op: dict[str, Any], x: Any, weights: dict[str, Any]) -> Any:
    return _biased(op, x @ weights[op["name"] + ".weight"], weights)


def _biased(op: dict[str, Any], x: Any, weights: dict[str, Any]) -> Any:
    return x + weights[op["name"] + ".bias"] if op.get("bias", True) else x


def _pool(op: dict[str, Any], x: Any) -> Any:
    inner = (1, *[op["kernel"]] * op["dims"], 1), (1, *[op["stride"]] * op["dims"], 1)
    padding = ((0, 0), *[tuple(op["padding"])] * op["dims"], (0, 0))
    if op["kind"] == "max":
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, *inner, padding)
    total = jax.lax.reduce_window(x, 0.0, jax.lax.add, *inner, padding)
    return total / op["kernel"] ** op["dims"]


def _key(numbers: Any) -> Any:
    return jax.random.wrap_key_data(numbers, impl="threefry2x32")


def _dropout(op: dict[str, Any], x: Any, key: Any) -> Any:
    if not op["share"]:
        return x
    kept = jax.random.bernoulli(key, 1 - op["share"], x.shape)
    return jnp.where(kept, x / (1 - op["share"]), 0.0)


def _apply(network: list[dict[str, Any]], weights: dict[str, Any], x: Any, key: Any) -> Any:
    kinds: dict[str, Callable[..., Any]] = {
        "conv": lambda op, x: _conv(op, x, weights),
        "linear": lambda op, x: _linear(op, x, weights),
        "pool": _pool,
        "activation": lambda op, x: _ACTIVATIONS[op["function"]](x),
        "dropout": lambda op, x: _dropout(op, x, jax.random.fold_in(_key(key), network.index(op))),
        "flatten": lambda op, x: _flat(x) if x.ndim > 2 else x,
    }
    for op in network:
        x = kinds[op["op"]](op, x)
    return x


def _loss(job: dict[str, Any], weights: dict[str, Any], batch: Any, key: Any) -> Any:
    inputs, labels = batch
    outputs = _apply(job["network"], weights, inputs, key)
    if job["loss"] == "mse":
        flat = [_flat(x) if x.ndim > 2 else x for x in (outputs, inputs)]
        return jnp.mean((flat[0] - flat[1]) ** 2)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(outputs), labels[:, None], axis=1)
    return -jnp.mean(chosen)


def _update(optimizer: dict[str, Any], state: Any, gradients: Any) -> Any:
    """Return weights, moments and count after a step; JAX brings no optimizers."""
    weights, moments, count = state
    rate, count = optimizer["learning_rate"], count + 1
    if optimizer["name"] == "sgd":
        return jax.tree.map(lambda w, g: w - rate * g, weights, gradients), moments, count
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], gradients)
    rate = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    # torch's epsilon stands beside the corrected root
    small = 1e-8 * jnp.sqrt(1 - 0.999**count)
    new = jax.tree.map(
        lambda w, m, v: w - rate * m / (jnp.sqrt(v) + small), weights, first, second
    )
    return new, (first, second), count


def _first_weights(job: dict[str, Any]) -> dict[str, np.ndarray]:
    pairs = passes.initial_weights(job)
    # whole arrays: to arrange one on the device, JAX would compile a program for its shape
    return {name: np.ascontiguousarray(passes.channels_last(w)) for name, w in pairs}


class _Functions:
    """The compiled functions of a job: made once for all jobs of the same shapes."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._job, self.n_workers = job, len(job["device_batches"])
        self._share = protocol.weight_of(job, protocol.rank())
        # programs over several processes must be the same everywhere, so equal in their shapes
        self.is_together = self.n_workers > 1 and len(set(job["device_batches"])) == 1
        weights = sorted(_first_weights(job).items())  # in the order of `ravel_pytree`
        self._shapes = {name: weight.shape for name, weight in weights}
        self.forward = jax.jit(self._forward)
        self.backward = jax.jit(self._backward)
        self.update = jax.jit(self._update, donate_argnums=0)
        if self.n_workers > 1:
            self.mesh = jax.make_mesh((self.n_workers,), (_WORKERS,))
            self.equal = NamedSharding(self.mesh, PartitionSpec())
            self.divided = NamedSharding(self.mesh, PartitionSpec(_WORKERS))
            self.sum = jax.jit(self._mapped(self._sum, 1, PartitionSpec()))
        self.step = jax.jit(self._whole_step(), donate_argnums=0)

    def _mapped(self, function: Any, n_divided: int, out: Any, n_equal: int = 0) -> Any:
        own = PartitionSpec(_WORKERS)
        specs = (PartitionSpec(),) * n_equal + (own,) * n_divided
        return jax.shard_map(
            function, mesh=self.mesh, in_specs=specs, out_specs=out, check_vma=False
        )

    def _whole_step(self) -> Any:
        if not self.is_together:
            return self._step_alone
        out = (PartitionSpec(), PartitionSpec(_WORKERS))
        return self._mapped(self._step_together, 3, out, n_equal=1)

    def _step_alone(self, state: Any, inputs: Any, labels: Any, key: Any) -> Any:
        loss, gradients = self._gradients(state, inputs, labels, key)
        return _update(self._job["optimizer"], state, gradients), loss

    def _step_together(self, state: Any, inputs: Any, labels: Any, key: Any) -> Any:
        loss, gradients = self._gradients(state, inputs, labels, key[0])
        # one message: on CPUs XLA does not join small ones, and each costs a start-up
        total = jax.lax.psum(self._share * ravel_pytree(gradients)[0], _WORKERS)
        return _update(self._job["optimizer"], state, self._unravel(total)), loss[None]

    def _gradients(self, state: Any, inputs: Any, labels: Any, key: Any) -> Any:
        return jax.value_and_grad(lambda w: _loss(self._job, w, (inputs, labels), key))(state[0])

    def _forward(self, weights: Any, inputs: Any, labels: Any, key: Any) -> Any:
        return jax.vjp(lambda w: _loss(self._job, w, (inputs, labels), key), weights)

    def _backward(self, pull: Any) -> Any:
        return ravel_pytree(pull(jnp.float32(self._share))[0])[0][None]

    def _update(self, state: Any, gradients: Any) -> Any:
        return _update(self._job["optimizer"], state, self._unravel(gradients.reshape(-1)))

    def _unravel(self, flat: Any) -> dict[str, Any]:
        ends = np.cumsum([np.prod(shape, dtype=int) for shape in self._shapes.values()])
        parts = jnp.split(flat, ends[:-1])
        pairs = zip(self._shapes.items(), parts)  # noqa: B905  # Python 3.8
        return {name: part.reshape(shape) for (name, shape), part in pairs}

    def _sum(self, parts: Any) -> Any:
        return jax.lax.psum(parts[0], _WORKERS)


@lru_cache(maxsize=8)
def _functions(text: str) -> _Functions:
    return _Functions(json.loads(text))


class _JaxTrainer(passes.Trainer):
    def __init__(self, job: dict[str, Any]) -> None:
        shapes = ("network", "loss", "optimizer", "device_batches", "seed")
        self._do = _functions(json.dumps({key: job[key] for key in shapes}))
        self._names = [name for name, _ in passes.initial_weights(job)]
        weights = _first_weights(job)
        moments = ((), ())
        if job["optimizer"]["name"] == "adam":
            moments = tuple(jax.tree.map(np.zeros_like, weights) for _ in range(2))
        self._state: Any = jax.device_put((weights, moments, np.float32(0)))
        self._is_global = False
        # every worker drops other units; the keys are made here, for shapes' sake as numbers
        self._key = np.array([job["seed"] % 2**32, protocol.rank() << 20], np.uint32)
        self._pull: Any = None
        self._gradients: Any = None
        self._last_loss: Any = None

    def put(self, inputs: np.ndarray, labels: np.ndarray) -> Any:
        self._key = self._key + np.array([0, 1], np.uint32)
        inputs = np.ascontiguousarray(np.moveaxis(inputs, 1, -1)) if inputs.ndim > 2 else inputs
        batch = jax.device_put((inputs, labels.astype(np.int32), self._key))
        return jax.block_until_ready(batch)

    def step(self, batch: Any) -> float:
        do = self._do
        if do.n_workers > 1 and not do.is_together:
            return self._step_apart(batch)
        if do.is_together:
            self._go_global(True)
            key = batch[2][None]
            batch = [self._as_global(x, do.divided) for x in (*batch[:2], key)]
        self._state, loss = jax.block_until_ready(do.step(self._state, *batch))
        return float(_local(loss).reshape(()))

    def _step_apart(self, batch: Any) -> float:
        """Do a step of unequal shapes: one program over all processes is impossible."""
        self._go_global(False)
        loss, pull = self._do.forward(self._state[0], *batch)
        total = self._total(self._do.backward(pull))
        self._state = jax.block_until_ready(self._do.update(self._state, total))
        return float(loss)

    def forward(self, batch: Any) -> None:
        self._go_global(False)
        pair = self._do.forward(self._state[0], *batch)
        self._last_loss, self._pull = jax.block_until_ready(pair)

    def backward(self) -> None:
        self._gradients = jax.block_until_ready(self._do.backward(self._pull))

    def wait(self) -> None:
        if self._do.n_workers > 1:
            jax.block_until_ready(self._total(jnp.zeros((1, 1), jnp.float32)))

    def transfer(self) -> None:
        if self._do.n_workers > 1:
            self._gradients = jax.block_until_ready(self._total(self._gradients))

    def update(self) -> None:
        self._state = jax.block_until_ready(self._do.update(self._state, self._gradients))

    def loss(self) -> float:
        return float(self._last_loss)

    def weights(self) -> list[np.ndarray]:
        now = {name: np.asarray(_local(w)) for name, w in self._state[0].items()}
        return [passes.channels_first(now[name]) for name in self._names]

    def _total(self, part: Any) -> Any:
        return _local(self._do.sum(self._as_global(part, self._do.divided)))

    def _as_global(self, x: Any, sharding: Any) -> Any:
        shape = x.shape
        if sharding is self._do.divided:
            shape = (x.shape[0] * self._do.n_workers, *x.shape[1:])
        return jax.make_array_from_single_device_arrays(shape, sharding, [x])

    def _go_global(self, is_global: bool) -> None:
        if self._is_global == is_global or self._do.n_workers == 1:
            return
        change = (lambda x: self._as_global(x, self._do.equal)) if is_global else _local
        self._state, self._is_global = jax.tree.map(change, self._state), is_global


def _local(x: Any) -> Any:
    return x.addressable_data(0)


def _join() -> None:
    """Meet the other workers; JAX has no collectives over processes before that."""
    if protocol.world_size() == 1:
        return
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    address = os.environ["MASTER_ADDR"] + ":" + os.environ["MASTER_PORT"]
    jax.distributed.initialize(address, protocol.world_size(), protocol.rank())


if __name__ == "__main__":
    jax_programs.remember()
    _join()
    protocol.serve(
        "jax",
        {"jax": jax.__version__, "numpy": np.__version__},
        lambda job: passes.run_job(job, _JaxTrainer),
    )
