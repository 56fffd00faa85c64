"""Hosts on this machine: network namespaces with a link of limited bandwidth each (needs root)."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_NETWORK = "198.18.77"  # of the range that is set aside for tests of networks (RFC 2544)
_DEVICE = "eth0"  # what every host calls its end of the link
_BURST_S = 1e-3  # of traffic may go through at once: a real link lets nothing through for free


@dataclass(frozen=True)
class Hosts:
    """Namespaces, one for each rank, that reach each other through one bridge."""

    prefix: str

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which workers meet."""
        return {"MASTER_ADDR": f"{_NETWORK}.1", "GLOO_SOCKET_IFNAME": _DEVICE}

    def launch(self, rank: int) -> Sequence[str]:
        """Return what starts a command on the host of a rank."""
        return ["ip", "netns", "exec", f"{self.prefix}{rank}"]


def can_make_hosts() -> bool:
    """Return whether this process may make network namespaces."""
    return os.geteuid() == 0 and all(shutil.which(program) for program in ("ip", "tc"))


@contextlib.contextmanager
def limited_hosts(n_hosts: int, bits_per_second: float) -> Iterator[Hosts]:
    """Make hosts whose links send at most so much; they are gone afterwards."""
    prefix = f"pace{os.getpid()}-"
    bridge = f"pace{os.getpid()}"
    with contextlib.ExitStack() as stack:
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", bridge)
        _ip("link", "set", bridge, "up")
        for rank in range(n_hosts):
            _ip("netns", "add", f"{prefix}{rank}")
            stack.callback(_ip, "netns", "del", f"{prefix}{rank}")
            outer = _join(f"{prefix}{rank}", bridge, rank, bits_per_second)
            stack.callback(_ip, "link", "del", outer)  # a namespace would take its time to
        yield Hosts(prefix)


def _join(host: str, bridge: str, rank: int, bits_per_second: float) -> str:
    """Link a host to the bridge, limited at its own end; return the other end."""
    outer = f"{bridge}v{rank}"
    _ip("link", "add", outer, "type", "veth", "peer", "name", _DEVICE, "netns", host)
    _ip("link", "set", outer, "master", bridge, "up")
    inside = ("netns", "exec", host)
    _ip(*inside, "ip", "addr", "add", f"{_NETWORK}.{rank + 1}/24", "dev", _DEVICE)
    for device in ("lo", _DEVICE):
        _ip(*inside, "ip", "link", "set", device, "up")
    burst = f"{bits_per_second * _BURST_S / 8:.0f}b"  # of bytes, as `tc` writes them
    limit = ("tbf", "rate", f"{bits_per_second:.0f}bit", "burst", burst, "latency", "200ms")
    _ip(*inside, "tc", "qdisc", "add", "dev", _DEVICE, "root", *limit)
    return outer


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
