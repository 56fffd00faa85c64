"""What the name of a column says of a time or a rate: its unit, and what it is a rate of."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from paceline.dataset._names import DEVICES, NODES

RateOf = Literal["steps", "tokens", "samples"]
RateShare = Literal["device", "node"]


class Unit(NamedTuple):
    """A unit of time that a name may tell."""

    word: str
    seconds: float


_SECONDS = Unit("seconds", 1.0)
_MILLISECONDS = Unit("milliseconds", 1e-3)
_MICROSECONDS = Unit("microseconds", 1e-6)
_NANOSECONDS = Unit("nanoseconds", 1e-9)
_MINUTES = Unit("minutes", 60.0)
_HOURS = Unit("hours", 3600.0)

_SPELLINGS = {
    _SECONDS: "s sec secs second seconds",
    _MILLISECONDS: "ms msec msecs milli millis millisecond milliseconds",
    _MICROSECONDS: "us usec usecs micros microsecond microseconds",
    _NANOSECONDS: "ns nsec nsecs nanos nanosecond nanoseconds",
    _MINUTES: "mins minute minutes",
    _HOURS: "h hr hrs hour hours",
}
UNITS = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}
# "time_min" may be the least time; "time (min)" and "images/min" cannot.
_PLAIN_MINUTES = re.compile(r"[(\[/]\s*min\b|per[ _]min\b")

_TOKENS = {"token", "tokens", "tok", "toks"}
_STEPS = {"it", "its", "iter", "iters", "iteration", "iterations", "step", "steps"}
_STEPS |= {"batches", "minibatches"}
_PER = re.compile(r"/|(?<![a-z])per(?![a-z])")


def name_words(name: str) -> tuple[str, ...]:
    """Split a column's name into lower-case words; digits stay with the letters beside them.

    Examples
    --------
    >>> name_words("stepTimeMs"), name_words("H100 step [µs]")
    (('step', 'time', 'ms'), ('h100', 'step', 'us'))
    """
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.replace("µ", "u").replace("μ", "u"))
    return tuple(re.findall(r"[a-z0-9]+", text.lower()))


def unit_in(name: str) -> Unit | None:
    """Return the unit of time that a name tells; None when it tells none, or several.

    Examples
    --------
    >>> unit_in("step time (ms)").word, unit_in("latency_us").seconds, unit_in("step_time")
    ('milliseconds', 1e-06, None)
    """
    found = {UNITS[word] for word in name_words(name) if word in UNITS}
    if _PLAIN_MINUTES.search(name.lower()):
        found.add(_MINUTES)
    return found.pop() if len(found) == 1 else None


def rate_of(name: str) -> RateOf:
    """Return what a column of rates counts: samples unless its name says otherwise.

    Examples
    --------
    >>> rate_of("tokens_per_sec"), rate_of("it/s"), rate_of("throughput")
    ('tokens', 'steps', 'samples')
    """
    counted, *per = _PER.split(name.lower())
    words = set(name_words(counted))
    if words & _TOKENS:
        return "tokens"
    return "steps" if per and words & _STEPS else "samples"


def rate_share(name: str) -> RateShare | None:
    """Return whether a column of rates is that of one device or node; None: of all together.

    Examples
    --------
    >>> rate_share("samples_per_sec_per_gpu"), rate_share("tokens/s/node"), rate_share("it/s")
    ('device', 'node', None)
    """
    parts = [set(name_words(part)) for part in _PER.split(name.lower())[1:]]
    words = {word.removesuffix("s") for part in parts for word in part}
    if words & DEVICES:
        return "device"
    return "node" if words & NODES else None
