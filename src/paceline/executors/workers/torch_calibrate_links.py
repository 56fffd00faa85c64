"""What a calibration measures between workers: exchanges alone, and as divided networks make them.

Every sample is a chain of exchanges, as a step is: the least time of one alone is rarely met by
all of many.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

if TYPE_CHECKING:
    from paceline.executors.workers import protocol
    from paceline.executors.workers.torch_exchange import GatherParts, SumOfParts
    from paceline.executors.workers.torch_halo import Halo, Window
else:
    import protocol  # neighbours: Paceline is not installed here
    from torch_exchange import GatherParts, SumOfParts
    from torch_halo import Halo, Window

_Row = dict[str, Any]
_SMALL = 1 << 20  # bytes below which exchanges are short
_LONG_S = 0.1  # exchanges that take longer are as long every time, so that few of them do
_FEW = 3
_SIDE = 8  # of the images that are divided
_WORK = 384  # side of the matrices that are multiplied in between


def measure_collectives(values: dict[str, Any], device: torch.device) -> list[_Row]:
    """Time exchanges of several sizes, by the clock on the wall."""
    rows = []
    for n_bytes in values["sizes"]:
        tensor = torch.ones(max(1, n_bytes // 4), device=device)
        for kind, act in (("all_reduce", _all_reduce), ("point_to_point", _ping_pong)):
            seconds = _chains(partial(act, tensor), n_bytes, values["n_repeats"], device)
            rows.append({"kind": kind, "n_bytes": 4 * tensor.numel(), "seconds": seconds})
    return rows


def measure_divided(values: dict[str, Any], device: torch.device) -> list[_Row]:
    """Time the exchanges of divided layers, sums, gathers and rows of neighbours, between work.

    Work on both sides of an exchange, as layers do it, lets workers drift apart and caches cool;
    `alone_s` is what it takes by itself.
    """
    rows = []
    for n_bytes in values["sizes"]:
        parts = _Parts(n_bytes, device)
        time_chains = partial(
            _chains, n_bytes=n_bytes, n_repeats=values["n_repeats"], device=device
        )
        alone = time_chains(parts.work)
        for kind in values["kinds"]:
            seconds = time_chains(partial(parts.exchange, kind))
            sent = parts.n_bytes // _SIDE if kind == "point_to_point" else parts.n_bytes
            figures = {"kind": kind, "n_bytes": parts.n_bytes, "sent_bytes": sent}
            rows.append({**figures, "alone_s": alone, "seconds": seconds})
    return rows


class _Parts:
    """An image that workers exchange as divided layers do, and some work before."""

    def __init__(self, n_bytes: int, device: torch.device) -> None:
        self.group, n_workers = dist.group.WORLD, dist.get_world_size()
        n_channels = max(n_workers, n_bytes // (4 * _SIDE**2 * n_workers) * n_workers)
        self.image = torch.ones(1, n_channels, _SIDE, _SIDE, device=device)
        self.n_part, self.n_bytes = n_channels // n_workers, 4 * self.image.numel()
        self.matrix = torch.ones(_WORK, _WORK, device=device)
        n = n_workers * _SIDE
        self.window = Window(n_in=n, n_out=n, kernel=3, stride=1, padding=1)

    def work(self) -> Tensor:
        """Compute for about a millisecond and make a new tensor."""
        torch.mm(self.matrix, self.matrix)
        return self.image * 2.0

    def exchange(self, kind: str) -> None:
        """Work, and exchange what came of it, forward; the way back of what was gathered, too."""
        image = self.work()
        if kind == "all_reduce":
            SumOfParts.apply(image, self.group)  # type: ignore[no-untyped-call]
        elif kind == "point_to_point":
            Halo.apply(image, self.window, 2, self.group)  # type: ignore[no-untyped-call]
        else:
            self._gather_and_back(image)

    def _gather_and_back(self, image: Tensor) -> None:
        with torch.enable_grad():
            part = image[:, : self.n_part].contiguous().requires_grad_()
            whole = GatherParts.apply(part, 1, image.shape[1], self.group)  # type: ignore
        whole.backward(image)


def measure_sharded(values: dict[str, Any], device: torch.device) -> list[_Row]:
    """Time steps of chains of linear maps, whole (stage 0) and sharded (stages 2 and 3)."""
    rows = []
    for width, n_units, n_maps in values["chains"]:
        inputs = torch.ones(values["batch"], width, device=device)
        for stage in (0, 2, 3):
            network = _chain(width, n_units, n_maps).to(device)
            if stage:
                _shard(network, stage)
            seconds = _steps(network, inputs, values["n_repeats"], device)
            figures = {"n_units": n_units, "n_bytes": 4 * n_maps * width * (width + 1)}
            rows.append({**figures, "stage": stage, "seconds": seconds})
    return rows


def measure_piped(values: dict[str, Any], device: torch.device) -> list[_Row]:
    """Time passes of micro-batches, alone and with a message to and from the other worker each.

    Messages are used one micro-batch later, as in a pipeline: what they take is taken from
    compute.
    """
    other = protocol.rank() ^ 1
    rows = []
    for width, n_rows in values["chains"]:
        network = _chain(width, 1, values["n_maps"]).to(device)
        pieces = [torch.ones(n_rows, width, device=device) for _ in range(values["n_pieces"])]
        for talks in (False, True):
            step = partial(_pieces, network, pieces, other if talks else None)
            step()
            times = [_timed(step, 1, device) / len(pieces) for _ in range(values["n_repeats"])]
            rows.append({"n_bytes": 4 * n_rows * width, "talks": talks, "seconds": times})
    return rows


def _pieces(network: nn.Module, pieces: list[Tensor], other: int | None) -> None:
    """Go through all micro-batches, with messages to and from another worker or without."""
    underway: list[Any] = []
    for piece in pieces:
        for work in underway:
            work.wait()
        given = piece.detach().requires_grad_()
        if other is not None:
            underway = [dist.irecv(torch.empty_like(piece), other)]
        output = network(given)
        output.sum().backward()
        if other is not None:
            underway.append(dist.isend(output.detach(), other))
    for work in underway:
        work.wait()


def _chain(width: int, n_units: int, n_maps: int) -> nn.Sequential:
    def unit() -> nn.Sequential:
        return nn.Sequential(*[nn.Linear(width, width) for _ in range(n_maps)])

    return nn.Sequential(*[unit() for _ in range(n_units)])


def _shard(network: nn.Sequential, stage: int) -> None:
    from torch.distributed.fsdp import fully_shard  # slow to import

    for part in (*network, network):
        fully_shard(part, reshard_after_forward=stage == 3)


def _steps(
    network: nn.Module, inputs: Tensor, n_repeats: int, device: torch.device
) -> list[float]:
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-6)

    def step() -> None:
        network(inputs).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    is_long = _slowest(_timed(step, 1, device), device) > _LONG_S
    return [_timed(step, 1, device) for _ in range(_FEW if is_long else n_repeats)]


def _chains(
    act: Callable[[], Any], n_bytes: int, n_repeats: int, device: torch.device
) -> list[float]:
    """Return seconds of one exchange in chains of them: more and longer ones of small tensors."""
    is_small = n_bytes < _SMALL
    n_calls, n_chains = (12, n_repeats) if is_small else (4, max(3, n_repeats // 2))
    with torch.no_grad():
        act()
        if _slowest(_timed(act, 1, device), device) > _LONG_S:
            n_calls, n_chains = 1, _FEW
        return [_timed(act, n_calls, device) for _ in range(n_chains)]


def _slowest(seconds: float, device: torch.device) -> float:
    """Return the longest time of all workers, who must agree on what to do next."""
    longest = torch.tensor(seconds, device=device)
    dist.all_reduce(longest, dist.ReduceOp.MAX)
    return float(longest)


def _timed(act: Callable[[], Any], n_calls: int, device: torch.device) -> float:
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(n_calls):
        act()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / n_calls


def _all_reduce(tensor: Tensor) -> None:
    dist.all_reduce(tensor)


def _ping_pong(tensor: Tensor) -> None:
    """Send from the first worker to the second and back; the others have nothing to do."""
    if protocol.rank() == 0:
        dist.send(tensor, 1)
        dist.recv(tensor, 1)
    elif protocol.rank() == 1:
        dist.recv(tensor, 0)
        dist.send(tensor, 0)
