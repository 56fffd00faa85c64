"""The unlocked pipeline: both passes of all stages at once, with gradients that come late.

REFERENCE 2 (the class of FDG): in every slot stage k of K goes forward with one micro-batch and
backward with the one that it saw 2 (K - 1 - k) slots before. Nobody waits for a flush; a gradient
meets weights that have been updated since (its staleness). Steps follow each other without a
bubble between them.
"""

from __future__ import annotations

import copy
from collections import deque
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

if TYPE_CHECKING:
    from paceline.executors.workers import protocol
    from paceline.executors.workers.torch_divided import Division
else:
    import protocol  # neighbours: Paceline is not installed here
    from torch_divided import Division


class UnlockedDivision(Division):
    """Every worker a stage that never waits for the others' other pass."""

    def divide(self, network: nn.Module) -> None:
        """Keep this worker's stage, and what passes between stages."""
        if not isinstance(network, nn.Sequential) or self.strategy["data"] > 1:
            raise protocol.RefusedError(
                "The unlocked schedule must be of one replica of a chain of parts."
            )
        self.n_stages, self.stage = self.strategy["pipeline"], self.place.stage
        self.n_pieces = self.strategy["micro_batches"]
        first, end = self.division["stages"][self.stage]
        self.network = network[first:end]
        self.is_last = self.stage == self.n_stages - 1
        self.size = self.global_batch // self.n_pieces
        ghost = copy.deepcopy(network).to("meta")
        self.before = self._shape(ghost, first) if self.stage else None
        self.behind = None if self.is_last else self._shape(ghost, end)
        self.slot = 0
        self.kept: deque[Any] = deque()  # micro-batches between their two passes
        self.targets: deque[Tensor] = deque()
        self.arriving: dict[str, tuple[Any, Tensor]] = {}
        self.leaving: list[tuple[Any, Tensor]] = []

    def gradients(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Go through as many slots as there are micro-batches."""
        self.targets.extend(targets.chunk(self.n_pieces))
        losses = [self._run_slot(piece) for piece in inputs.chunk(self.n_pieces)]
        found = [loss for loss in losses if loss is not None]
        return torch.stack(found).mean() if found else torch.zeros((), dtype=self.dtype)

    def close(self) -> None:
        """Let everything arrive that was sent, so that the next job starts clean."""
        for work, _ in (*self.arriving.values(), *self.leaving):
            work.wait()

    @property
    def delay(self) -> int:
        """Slots between the two passes of a micro-batch."""
        return int(2 * (self.n_stages - 1 - self.stage))

    def _run_slot(self, piece: Tensor) -> Tensor | None:
        given, gradient = self._receive("before", piece), self._receive("behind", None)
        self._expect()
        if gradient is not None:
            self._go_back(gradient)
        loss = None
        if given is not None:
            loss = self._go_forward(given)
        self.slot += 1
        return loss

    def _go_forward(self, given: Tensor) -> Tensor | None:
        given = given.detach().requires_grad_(self.stage > 0)
        if self.is_last:
            loss = self.loss(self.network(given), self.targets.popleft())
            torch.autograd.backward(loss / self.n_pieces)
            self._send(given.grad, self.stage - 1)
            return loss.detach()
        if self.strategy.get("recompute"):
            with torch.no_grad():
                output = self.network(given)
            self.kept.append((given, None))
        else:
            with torch.autograd.graph.saved_tensors_hooks(_detached, _same):
                output = self.network(given)
            self.kept.append((given, output))
        self._send(output.detach(), self.stage + 1)
        return None

    def _go_back(self, gradient: Tensor) -> None:
        given, output = self.kept.popleft()
        if output is None:
            output = self.network(given)
        torch.autograd.backward(output, gradient)
        if self.stage:
            self._send(given.grad, self.stage - 1)

    def _receive(self, side: str, piece: Tensor | None) -> Tensor | None:
        """Return what has come from a neighbour, or the network's own input."""
        if side == "before" and self.stage == 0:
            return piece
        if side not in self.arriving:
            return None
        work, tensor = self.arriving.pop(side)
        work.wait()
        return tensor

    def _expect(self) -> None:
        """Ask for what the neighbours send in this slot, to be used in the next one."""
        while len(self.leaving) > 4:
            self.leaving.pop(0)[0].wait()
        if self.before is not None and self.slot >= self.stage - 1:
            self.arriving["before"] = self._ask(self.before, self.stage - 1)
        due = 2 * (self.n_stages - 1) - self.stage - 1  # slot of the neighbour's first gradient
        if self.behind is not None and self.slot >= due:
            self.arriving["behind"] = self._ask(self.behind, self.stage + 1)

    def _ask(self, shape: tuple[int, ...], stage: int) -> tuple[Any, Tensor]:
        tensor = torch.empty(shape, dtype=self.dtype, device=self.device)
        return dist.irecv(tensor, self._rank(stage)), tensor

    def _send(self, tensor: Tensor | None, stage: int) -> None:
        if tensor is not None and stage >= 0:
            tensor = tensor.contiguous()
            self.leaving.append((dist.isend(tensor, self._rank(stage)), tensor))

    def _rank(self, stage: int) -> int:
        return int(self.place.ranks[0, stage, 0])

    def _shape(self, ghost: Any, end: int) -> tuple[int, ...]:
        """Return the shape of one micro-batch behind so many operations."""
        sample = self.job["sample"]
        is_tokens = "vocabulary" in sample
        dtype = torch.long if is_tokens else next(ghost.parameters()).dtype
        x = torch.empty(self.size, *sample["shape"], device="meta", dtype=dtype)
        return tuple(ghost[:end](x).shape)


def _detached(tensor: Tensor) -> Tensor:
    """Keep a tensor whatever is written over it: late gradients use the weights of then."""
    return tensor.detach()


def _same(tensor: Tensor) -> Tensor:
    return tensor
