"""Which strategies workers run, in words."""

from __future__ import annotations

from paceline.scenario import Strategy

_SPLITS = ("spatial", "filter", "channel", "tensor", "context", "expert")
_NOBODY = ("context", "expert")
_SHARDS = (0, 2, 3)
RUNNABLE = (
    "data",
    "zero2 and zero3 (data, sharded by FSDP2)",
    "pipeline (gpipe, 1f1b, interleaved, unlocked)",
    "filter",
    "channel",
    "spatial",
    "tensor",
    "data with any one of pipeline (not unlocked), filter, channel, spatial and tensor",
)


def why_not_run(strategy: Strategy) -> str:
    """Return why no worker runs a strategy; empty when workers do.

    Examples
    --------
    >>> why_not_run(Strategy(data=2, filter=2))
    ''
    >>> why_not_run(Strategy(pipeline=2, filter=2, micro_batches=4))
    'no worker runs pipeline with filter'
    """
    inner = [name for name in ("pipeline", *_SPLITS) if getattr(strategy, name) > 1]
    nobody = [name for name in inner if name in _NOBODY]
    if nobody:
        return f"no worker runs {nobody[0]}"
    if len(inner) > 1:
        return f"no worker runs {' with '.join(inner)}"
    return _why_not_sharded(strategy, inner) or _why_not_scheduled(strategy, inner)


def _why_not_sharded(strategy: Strategy, inner: list[str]) -> str:
    if strategy.shard not in _SHARDS:
        return "no worker shards the state alone (ZeRO-1): torch shards gradients with it"
    if strategy.shard and inner:
        return f"no worker shards replicas of {inner[0]}"
    return ""


def _why_not_scheduled(strategy: Strategy, inner: list[str]) -> str:
    name = strategy.schedule
    if inner != ["pipeline"]:
        return "no worker recomputes in parts of layers" if inner and strategy.recompute else ""
    if name == "unlocked" and strategy.data > 1:
        return "no worker runs replicas of the unlocked schedule"
    if name == "sequential" and strategy.micro_batches > 1:
        return "no worker runs the sequential schedule with micro-batches"
    if name == "interleaved" and strategy.micro_batches % strategy.pipeline:
        return "interleaved stages need micro-batches that their number divides"
    return ""
