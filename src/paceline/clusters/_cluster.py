"""Devices, links between them, and the machines that they make up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

PRECISIONS = ("float64", "float32", "tf32", "float16", "bfloat16", "float8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Time of one kind of layer in one pass, as a calibration found it: a sum of six parts.

    Parameters
    ----------
    launch_s
        However small the layer is.
    s_per_flop
        Seconds per FLOP, in float32.
    s_per_input_byte, s_per_output_byte, s_per_weight_byte
        Seconds per byte that the layer reads, writes and has of weights.
    s_per_sample_weight_byte
        Seconds per byte of weights and sample: convolutions of few positions read their weights
        again for every sample.
    """

    launch_s: float = 0.0
    s_per_flop: float = 0.0
    s_per_input_byte: float = 0.0
    s_per_output_byte: float = 0.0
    s_per_weight_byte: float = 0.0
    s_per_sample_weight_byte: float = 0.0

    @property
    def slopes(self) -> tuple[float, ...]:
        """Seconds per FLOP, byte of input, output and weights, and byte of weights a sample."""
        return (
            self.s_per_flop,
            self.s_per_input_byte,
            self.s_per_output_byte,
            self.s_per_weight_byte,
            self.s_per_sample_weight_byte,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What computes.

    Parameters
    ----------
    name
        As its maker calls it.
    peak_flops
        FLOP per second by precision, one of `PRECISIONS`.
    memory_bytes, memory_bandwidth
        Bytes, and bytes per second.
    efficiency
        Largest share of the peak that a kind of layer reaches (``conv``, ``linear``,
        ``attention``), with ``default`` for the others.
    half_flop
        Work of one kernel at which half of that share is reached: small kernels are slower.
    launch_s
        Least time of any kernel.
    memory_efficiency
        Share of the memory bandwidth that is reached.
    kernels
        Where a calibration measured them: by kind of layer for the forward pass, with
        ``_backward`` behind it for the other, ``update_adam`` and so on for optimizers. They
        go before the efficiencies.
    """

    name: str
    peak_flops: Mapping[str, float]
    memory_bytes: float
    memory_bandwidth: float
    efficiency: Mapping[str, float] = field(default_factory=lambda: {"default": 0.5})
    half_flop: float = 0.0
    launch_s: float = 0.0
    memory_efficiency: float = 0.8
    kernels: Mapping[str, Kernel] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What carries bytes between devices.

    Parameters
    ----------
    name
        NVLink, PCIe, InfiniBand …
    latency_s
        To start one message (alpha).
    bandwidth
        Bytes per second of one device in one direction (1 / beta).
    floor_s
        Least time of a collective, however small: max(floor, alpha + beta n).
    contention
        Factor on beta when all devices of a level talk at once.
    message_latency_s, message_bandwidth
        Of plain messages from one device to another, where they differ from those of
        collectives; None: they do not.
    """

    name: str
    latency_s: float
    bandwidth: float
    floor_s: float = 0.0
    contention: float = 1.0
    message_latency_s: float | None = None
    message_bandwidth: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Devices that one kind of link joins, from the inside out.

    Parameters
    ----------
    name
        ``node``, ``rack``, ``cluster`` …
    size
        How many of the level below it joins (of devices, for the innermost); the outermost
        may be 0: as many as asked for.
    link
        What joins them.
    oversubscription
        How much less bandwidth there is when all of them talk outwards at once.
    """

    name: str
    size: int
    link: Link
    oversubscription: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGroup:
    """Neighbouring devices of a cluster that differ from its usual one.

    Parameters
    ----------
    count
        How many.
    speed
        How many times faster they compute than the cluster's `device`.
    memory_bytes
        Of each; None: as `device` has.
    """

    count: int
    speed: float = 1.0
    memory_bytes: float | None = None


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Devices, equal unless said otherwise, and the levels that join them.

    Parameters
    ----------
    name
        Short lower-case word.
    device
        What computes.
    levels
        From the inside out: first the devices of a node.
    n_devices
        How many there are; 0: as many as asked for, or as the levels have room for.
    n_cores
        Cores that workers on the CPU share; more workers than cores slow each other down.
        0: every device computes by itself.
    slowdowns
        How many times longer a worker computes when 1, 2, 3 … of them share a node, beyond
        waiting for a core: they share caches and memory. Empty: not at all.
    exchange_slowdowns
        How many times longer a collective of 1, 2, 3 … workers of a node takes than their link
        says. Empty: as many times longer as there are more workers than cores.
    exchange_floors_s
        Least seconds of a collective of 1, 2, 3 … workers of a node, before it is slowed down:
        those that wait for a core begin later. Empty: the floor of the link.
    price_per_device_hour
        Money; None where unknown.
    currency
        Of that price.
    sources
        Where each figure comes from, by dotted field name.
    unverified
        True when a figure has no retrievable source.
    devices
        Groups of devices, in order, where not all are equal; empty: all are like `device`.
    """

    name: str
    device: Device
    levels: tuple[Level, ...]
    n_devices: int = 0
    n_cores: int = 0
    slowdowns: tuple[float, ...] = ()
    exchange_slowdowns: tuple[float, ...] = ()
    exchange_floors_s: tuple[float, ...] = ()
    price_per_device_hour: float | None = None
    currency: str = "USD"
    sources: Mapping[str, str] = field(default_factory=dict)
    unverified: bool = False
    devices: tuple[DeviceGroup, ...] = ()

    @property
    def capacity(self) -> int:
        """How many devices there can be: `n_devices`, and what levels have room for; 0: any."""
        room = math.prod(int(level.size) for level in self.levels)
        here = int(self.n_devices)
        return min(room, here) if room and here else room or here

    @property
    def is_even(self) -> bool:
        """Whether all devices are like `device`."""
        return all(g.speed == 1.0 and g.memory_bytes is None for g in self.devices)

    def speeds(self, n_devices: int) -> NDArray[np.float64]:
        """Return how much faster than `device` the first so many devices are."""
        each = [group.speed for group in self.devices for _ in range(group.count)]
        return np.array(each[:n_devices] or [1.0] * n_devices)

    def memories(self, n_devices: int) -> NDArray[np.float64]:
        """Return the memory of the first so many devices in bytes."""
        usual = self.device.memory_bytes
        each = [g.memory_bytes or usual for g in self.devices for _ in range(g.count)]
        return np.array(each[:n_devices] or [usual] * n_devices, dtype=float)

    def crowding(self, n_workers: ArrayLike) -> NDArray[np.float64]:
        """Return how many times longer each of so many workers computes than one alone."""
        return self._waiting(n_workers) * self._measured(n_workers, self.slowdowns or (1.0,))

    def exchange_crowding(self, n_workers: ArrayLike) -> NDArray[np.float64]:
        """Return how many times longer so many workers exchange than their link says."""
        if self.exchange_slowdowns:
            return self._measured(n_workers, self.exchange_slowdowns)
        return self._waiting(n_workers)

    def exchange_floor(self, n_workers: ArrayLike) -> NDArray[np.float64]:
        """Return the least seconds of a collective of so many workers of a node."""
        return self._measured(n_workers, self.exchange_floors_s or (0.0,))

    def can_overlap(self, n_workers: ArrayLike) -> NDArray[np.bool_]:
        """Return whether exchanges of so many workers can hide behind compute.

        On the CPU an exchange needs a core of its own to do so: where all of them compute, what
        it takes is taken from them.
        """
        return np.asarray(self._on_node(n_workers) < (self.n_cores or np.inf))

    def _waiting(self, n_workers: ArrayLike) -> NDArray[np.float64]:
        on_node = self._on_node(n_workers)
        return np.maximum(1.0, on_node / (self.n_cores or np.inf))

    def _measured(self, n_workers: ArrayLike, figures: tuple[float, ...]) -> NDArray[np.float64]:
        on_node, counts = self._on_node(n_workers), np.arange(1, len(figures) + 1)
        return np.asarray(np.interp(on_node, counts, figures), float)

    def _on_node(self, n_workers: ArrayLike) -> NDArray[np.float64]:
        most = float(self.devices_per_node or np.inf)
        return np.asarray(np.minimum(np.asarray(n_workers, float), most))

    def __str__(self) -> str:
        inside, *outside = self.levels
        words = f"{inside.size or 'any number of'} {self.device.name} by {inside.link.name}"
        links = dict.fromkeys(level.link.name for level in outside)  # each named once
        joined = f" a node, nodes by {' and '.join(links)}" if links else ""
        return words + joined + (" (unverified)" if self.unverified else "")

    @property
    def devices_per_node(self) -> int:
        """Number of devices that the innermost level joins."""
        return self.levels[0].size
