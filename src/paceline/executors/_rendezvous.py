"""Where workers on several hosts meet."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendezvous:
    """What torchrun calls a rendezvous: the first host's address, and which host this is.

    Parameters
    ----------
    host, port
        Of the first host, as the others reach it; the port must be free there.
    n_nodes, node_rank
        How many hosts there are, and which one this is, counted from 0.
    """

    host: str
    port: int
    n_nodes: int
    node_rank: int

    def __post_init__(self) -> None:
        if self.n_nodes < 1 or not 0 <= self.node_rank < self.n_nodes:
            raise InvalidInputError(
                f"`node_rank` must be from 0 until before {self.n_nodes}, the number of nodes, "
                f"but got {self.node_rank}."
            )

    def share(self, n_workers: int) -> tuple[int, int]:
        """Return the rank of this host's first worker, and how many it starts.

        Examples
        --------
        >>> Rendezvous(host="first", port=29500, n_nodes=2, node_rank=1).share(8)
        (4, 4)
        """
        if n_workers % self.n_nodes:
            raise InvalidInputError(
                f"{n_workers} workers must be dealt out evenly to nodes, but got {self.n_nodes}."
            )
        each = n_workers // self.n_nodes
        return self.node_rank * each, each


def parse_rendezvous(text: str, n_nodes: int, node_rank: int) -> Rendezvous:
    """Return the meeting place in ``HOST:PORT``."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InvalidInputError(
            f"--rendezvous must be HOST:PORT, but got {text!r}. Try: --rendezvous first:29500"
        )
    return Rendezvous(host=host, port=int(port), n_nodes=n_nodes, node_rank=node_rank)
