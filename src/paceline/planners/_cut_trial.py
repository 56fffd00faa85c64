"""Cuts tried out in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from paceline.oracle import CutStep, pipeline_time, simulate
from paceline.planners._chain import Chain, DeviceKind, Partition
from paceline.scenario import Strategy

Array = NDArray[np.float64]

_MOST_PASSES = 4000  # of one simulation, where many are made
_MOST_WORK = 40_000  # passes simulated to move bounds


class CutTrial:
    """A chain of units whose cuts are simulated pass by pass.

    Parameters
    ----------
    each
        What every unit costs by itself.
    places
        Units behind which a cut may be; the chain has one link for each.
    chain
        For the memory of its stages.
    strategy, kinds
        Schedule and micro-batches, and the devices.
    """

    def __init__(
        self,
        each: CutStep,
        places: Sequence[int],
        chain: Chain,
        strategy: Strategy,
        kinds: Sequence[DeviceKind],
    ) -> None:
        starts = [0, *places[:-1]]
        self.forward = np.add.reduceat(each.forward_s, starts)
        self.backward = np.add.reduceat(each.backward_s, starts)
        self.sent = np.append(each.transfer_s, 0.0)[np.array(places) - 1]
        self.chain, self.strategy, self.kinds = chain, strategy, kinds
        n_pieces = strategy.pipeline * strategy.virtual_stages
        self.n_passes = 2 * n_pieces * strategy.micro_batches
        self.is_simulated = self.n_passes <= _MOST_PASSES

    def seconds(self, ends: Sequence[int], order: Sequence[int]) -> float:
        """Return the time of all passes; beyond a few thousand of them by the closed form."""
        strategy, starts = self.strategy, [0, *ends[:-1]]
        speeds = np.array([self.kinds[kind].speed for kind in order])
        forward = np.add.reduceat(self.forward, starts) / speeds
        backward = np.add.reduceat(self.backward, starts) / speeds
        sent = self.sent[np.array(ends[:-1], dtype=np.int64) - 1]
        if not self.is_simulated:
            n = strategy.micro_batches
            busy = float(pipeline_time(forward, backward, n))
            return busy + 2 * float(sent.sum()) + (n - 1) * self._unhidden(forward, backward, sent)
        is_plain = strategy.schedule in ("unlocked", "interleaved") and (
            strategy.virtual_stages == 1
        )
        run = simulate(
            "1f1b" if is_plain else strategy.schedule,
            forward,
            backward,
            n_micro_batches=strategy.micro_batches,
            transfer_s=sent,
            virtual_stages=strategy.virtual_stages,
        )
        return run.step_s

    @staticmethod
    def _unhidden(forward: Array, backward: Array, sent: Array) -> float:
        """Return by how much the slowest link is slower than the slowest stage."""
        return max(0.0, 2 * float(sent.max(initial=0.0)) - float((forward + backward).max()))

    def improved(self, first: Partition) -> Partition:
        """Move one bound by one unit at a time while the simulated time falls."""
        if not self.is_simulated or len(first.ends) == 1:
            return first
        best, best_s, n_trials = first, self.seconds(first.ends, first.kinds), 0
        is_moving = True
        while is_moving and n_trials * self.n_passes < _MOST_WORK:
            is_moving = False
            for moved in self._neighbours(best):
                n_trials += 1
                seconds = self.seconds(moved.ends, moved.kinds)
                if seconds < best_s * (1 - 1e-9):
                    best, best_s, is_moving = moved, seconds, True
                    break
        return best

    def _neighbours(self, found: Partition) -> list[Partition]:
        moves = []
        for i in range(len(found.ends) - 1):
            for by in (-1, 1):
                ends = list(found.ends)
                ends[i] += by
                bounds = [0, *ends]
                if min(np.diff(bounds)) >= 1 and self._fits(ends, found.kinds):
                    moves.append(replace(found, ends=tuple(ends)))
        return moves

    def _fits(self, ends: Sequence[int], order: Sequence[int]) -> bool:
        first, n = 0, len(ends)
        for stage, (end, kind) in enumerate(zip(ends, order, strict=True)):
            in_flight = self.chain.in_flight(stage, n)
            if self.chain.stage_bytes(first, end, in_flight) > self.kinds[kind].memory_bytes:
                return False
            first = end
        return True
