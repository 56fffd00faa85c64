"""Data parallelism: samples are dealt out, and gradients averaged.

ParaDL (arXiv 2104.09075), table III, row "data": every device has all weights and its share of
the samples; 2 (p - 1) (a + sum |w| d b / p) a step for the gradients. They are sent in buckets
while the backward pass still runs, as `torch.nn.parallel.DistributedDataParallel` does, which
also broadcasts the buffers of batch normalisation before the forward pass.
"""

from __future__ import annotations

from paceline.oracle.strategies._base import Exchange

SUMMARY = "samples are dealt out; gradients are averaged while the backward pass runs"

# by scheme; the parameter server is synchronous (asynchronous training is not modelled)
SCHEMES = {
    "all_reduce": Exchange(collective="all_reduce", what="gradients", when="backward"),
    "parameter_server": Exchange(collective="parameter_server", what="gradients", when="backward"),
}
BUFFERS = Exchange(collective="broadcast", what="buffers", when="forward", overlaps=False)


def data_exchanges(scheme: str) -> tuple[Exchange, ...]:
    """Return what replicas exchange in a step."""
    return (BUFFERS, SCHEMES[scheme])
