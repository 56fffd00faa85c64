"""Which columns turn a throughput into the time of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from paceline.dataset._names import (
    batch_of,
    counts_all_devices,
    counts_devices_of_a_node,
    counts_nodes,
    counts_what,
    model_degree,
    name_tokens,
)
from paceline.dataset._time_names import name_words, rate_of, rate_share
from paceline.errors import InvalidInputError

_LENGTHS = {"seqlen", "seqlength"}
_SEQUENCES = {"seq", "sequence", "context", "ctx"}
_LENGTH_WORDS = {"len", "length"}
_LENGTH_FILLERS = {"max", "train", "training", "model", "tokens"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """Columns whose product over those others is the work of a step, in what the rate counts."""

    above: list[str]
    below: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        product = " × ".join(f"`{name}`" for name in self.above) or "1"
        return " / ".join([product, *(f"`{name}`" for name in self.below)])


def throughput_factors(names: Sequence[str], throughput: str) -> Factors:
    """Return how the time of a step follows from a throughput.

    Parameters
    ----------
    names
        All columns of the table.
    throughput
        The column of rates: of samples, or of tokens or steps where its name says so.

    Raises
    ------
    InvalidInputError
        When the batch, the tokens of a sample or the devices are not known.
    """
    others = [name for name in names if name != throughput]
    if rate_of(throughput) == "steps":
        return _of_all_devices(Factors(above=[]), others, throughput)
    devices = device_columns(others)
    above, below = _batch_columns(others, devices)
    if not above:
        raise InvalidInputError(
            f"The throughput `{throughput}` needs a batch column to give a time: "
            f"`global_batch`, or `device_batch` and `n_devices`; but got {', '.join(names)}."
        )
    notes = [_device_note(devices)] if len(devices) > 1 and devices[0] in above else []
    factors = _in_tokens(Factors(above=above, below=below, notes=notes), others, throughput)
    return _of_all_devices(factors, others, throughput)


def global_batch_columns(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns whose product over those others is the global batch; none if unknown."""
    return _batch_columns(names, [name for name in names if counts_all_devices(name)][:1])


def device_columns(names: Sequence[str]) -> list[str]:
    """Return the columns whose product is the number of devices; none if unknown."""
    devices = [name for name in names if counts_all_devices(name)]
    if devices:
        return devices[:1]
    nodes = [name for name in names if counts_nodes(name)]
    of_a_node = [name for name in names if counts_devices_of_a_node(name)]
    return [nodes[0], of_a_node[0]] if nodes and of_a_node else []


def _batch_columns(names: Sequence[str], devices: Sequence[str]) -> tuple[list[str], list[str]]:
    whole = [name for name in names if batch_of(name) == "global_batch"]
    if whole:
        return whole[:1], []
    part = [name for name in names if batch_of(name) == "device_batch"]
    if part and devices:
        accumulation = [name for name in names if counts_what(name) == "accumulation"]
        # Devices that share the same samples are one replica: they do not multiply the batch.
        shared = {model_degree(name): name for name in names if model_degree(name)}
        return [part[0], *accumulation[:1], *devices], list(shared.values())
    plain = [name for name in names if batch_of(name) == "unknown"]
    return plain[:1], []


def _device_note(devices: Sequence[str]) -> str:
    return f"{' × '.join(f'`{name}`' for name in devices)} is taken as the number of devices."


def _in_tokens(factors: Factors, names: Sequence[str], throughput: str) -> Factors:
    """Count the batch in tokens where the rate does, by the length of a sequence."""
    is_rate = rate_of(throughput) == "tokens"
    is_batch = "tokens" in name_tokens(factors.above[0])
    if is_rate == is_batch:
        return factors
    lengths = sorted((n for n in names if _is_length(n)), key=lambda n: len(name_words(n)))
    if not lengths:
        counted, batch = ("tokens", "samples") if is_rate else ("samples", "tokens")
        raise InvalidInputError(
            f"A rate of {counted} and a batch of {batch} need the tokens of a sample to give a "
            f"time, but `{throughput}` and `{factors.above[0]}` come without a column `seq_len`; "
            "add it, or give the time with `--time`."
        )
    note = f"`{lengths[0]}` is taken as the tokens of a sample, which `{throughput}` needs."
    above, below = ([lengths[0]], []) if is_rate else ([], [lengths[0]])
    return Factors(
        above=factors.above + above, below=factors.below + below, notes=[*factors.notes, note]
    )


def _is_length(name: str) -> bool:
    """Return whether a column's name plainly says how long a sequence is."""
    words = set(name_words(name))
    is_plain = bool(words & _LENGTHS) or bool(words & _SEQUENCES and words & _LENGTH_WORDS)
    return is_plain and words <= _LENGTHS | _SEQUENCES | _LENGTH_WORDS | _LENGTH_FILLERS


def _of_all_devices(factors: Factors, names: Sequence[str], throughput: str) -> Factors:
    """Make a rate of one device or node that of all together."""
    share = rate_share(throughput)
    if share is None:
        return factors
    counts = device_columns(names) if share == "device" else [n for n in names if counts_nodes(n)]
    if not counts:
        raise InvalidInputError(
            f"A rate of one {share} needs the number of {share}s to give a time, but "
            f"`{throughput}` comes without a column `n_{share}s`; add it."
        )
    note = f"`{throughput}` is taken as the rate of one {share}, by its name."
    factors = replace(factors, notes=[*factors.notes, note])
    if share == "device" and counts[0] in factors.above:  # they multiply the batch and the rate
        return replace(factors, above=[name for name in factors.above if name not in counts])
    return replace(factors, below=factors.below + counts[: 2 if share == "device" else 1])
