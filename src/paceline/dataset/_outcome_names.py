"""Which names say that a column is an outcome of the run: a time, a rate or a utilisation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from paceline.dataset._time_names import UNITS, name_words

_TIMES = {"time", "times", "duration", "durations", "latency", "latencies", "elapsed"}
_TIMES |= {"runtime", "walltime", "wallclock", "steptime", "makespan"}
# Times of something else than the run: of a link, of what is trained on, of what was allowed.
_NOT_TIMES = {"link", "network", "net", "nic", "interconnect", "fabric", "hop", "pcie", "nvlink"}
_NOT_TIMES |= {"memory", "mem", "injected", "limit", "target", "budget", "slo", "deadline"}
_NOT_TIMES |= {"audio", "video", "clip", "speech", "utterance", "segment", "chunk", "window"}
_NOT_TIMES |= {"series", "dim", "dims", "embed", "embedding", "frames", "bins", "mask", "length"}
_STEPS_IN_TIME = re.compile(r"\btime ?steps?\b")  # of a recurrent network

_RATES = {"throughput", "speedup"}
# Rates of the hardware, of its price, of what is asked of it.
_NOT_RATES = {"bit", "bits", "byte", "bytes", "flop", "flops", "op", "ops", "cycle", "cycles"}
_NOT_RATES |= {f"{prefix}{unit}" for prefix in "kmgtp" for unit in ("b", "ib", "bit", "bits")}
_NOT_RATES |= {f"{prefix}{unit}" for prefix in "kmgtp" for unit in ("flop", "flops", "ops")}
_NOT_RATES |= {"bandwidth", "bw", "peak", "price", "cost", "dollar", "dollars", "usd", "eur"}
_NOT_RATES |= {"request", "requests", "query", "queries", "arrival", "arrivals", "frame", "frames"}
_NOT_RATES |= _NOT_TIMES

_SHARES = {"mfu", "hfu", "util", "utilization", "utilisation"}
_ACHIEVED = {"achieved", "measured", "sustained"}

_EVENTS = {"step", "steps", "iter", "iters", "iteration", "iterations", "it", "epoch", "wall"}
_EVENTS |= {"forward", "backward", "fwd", "bwd", "train", "training", "run", "total"}
_EVENTS |= {"gpu", "device", "node", "compute", "comm", "communication", "allreduce"}
_STATISTICS = {"mean", "avg", "average", "median", "min", "max", "std", "per", "in"}
_HEIGHT = "h"  # of an image, more often than hours


def is_outcome(name: str) -> bool:
    """Return whether a name says that its numbers follow from the time of the run.

    Examples
    --------
    >>> is_outcome("wall_time_s"), is_outcome("tokens_per_s"), is_outcome("mfu")
    (True, True, True)
    >>> is_outcome("time_steps"), is_outcome("link_latency_us"), is_outcome("power_limit_w")
    (False, False, False)
    """
    words = name_words(name.replace("/", " per "))
    return _is_time(words) or _is_rate(words) or _is_share(words) or _times_an_event(words)


def _is_time(words: Sequence[str]) -> bool:
    is_plain = not _STEPS_IN_TIME.search(" ".join(words)) and not _NOT_TIMES & {*words}
    return is_plain and bool(_TIMES & {*words})


def _is_rate(words: Sequence[str]) -> bool:
    is_per_time = any(a == "per" and (b in UNITS or b == "min") for a, b in pairwise(words))
    is_rate = is_per_time or bool(_RATES & {*words})
    return is_rate and (not _NOT_RATES & {*words} or bool(_ACHIEVED & {*words}))


def _is_share(words: Sequence[str]) -> bool:
    is_scaling = "efficiency" in words and bool({"scaling", "parallel"} & {*words})
    return is_scaling or (bool(_SHARES & {*words}) and not _NOT_TIMES & {*words})


def _times_an_event(words: Sequence[str]) -> bool:
    """Return whether a name is that of something that happens, and a unit: ``step_ms``."""
    units = {word for word in words if word in UNITS and word != _HEIGHT}
    rest = {word for word in words if not re.fullmatch(r"p?\d+", word)} - units - _STATISTICS
    return bool(units) and bool(rest) and rest <= _EVENTS
