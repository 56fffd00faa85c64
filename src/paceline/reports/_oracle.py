"""What the oracle says of strategies, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import numpy as np

from paceline.oracle import BOTTLENECKS, Knee, Survey
from paceline.reports._table import definitions, table
from paceline.scenario import DEGREES, Strategy
from paceline.units import format_count, format_number, format_seconds

_WIDTH = 80
_LABEL = 17
_SHORT = {
    "weight update": "update",
    "pipeline bubble": "bubble",
    "layer-wise collectives": "layers",
    "halo exchange": "halo",
    "pipeline transfers": "transfer",
    "gradient exchange": "gradient",
}
_HEADER = ("  strategy", "compute", "comm.", "step", "epoch", "GiB", "eff.", "limit")


def show_survey(found: Survey, n_samples: int | None = None) -> str:
    """Return one table per number of devices, the fastest strategy that fits marked.

    Parameters
    ----------
    found
        What was asked of the oracle.
    n_samples
        Of an epoch; None leaves its time out.
    """
    epoch_s = None if n_samples is None else found.result.epoch_s(n_samples)
    blocks = [_title(found, n_samples)]
    for n in np.unique(found.n_devices):
        rows = np.flatnonzero((found.n_devices == n) & found.result.is_possible)
        if not len(rows):
            blocks.append(f"{format_count(int(n), 'device')}: no strategy is possible")
            continue
        cells = [_row(found, int(row), epoch_s) for row in rows]
        batch = int(found.result.global_batch[rows[0]])
        shown = [0, 1, 2, 3, *([] if epoch_s is None else [4]), 5, 6, 7]
        picked = [[cell[i] for i in shown] for cell in cells]
        title = f"{format_count(int(n), 'device')}, {format_count(batch, 'sample')} a step:"
        blocks.append(f"{title}\n{table([_HEADER[i] for i in shown], picked)}")
    return "\n\n".join([*blocks, _notes(found)])


def _title(found: Survey, n_samples: int | None) -> str:
    result = found.result
    epoch = "" if n_samples is None else f", {format_count(n_samples, 'sample')} an epoch"
    gib = f"{result.cluster.device.memory_bytes / 2**30:.3g} GiB"
    room = gib if result.cluster.is_even else "the smallest device in use"
    n = found.n_scenarios
    text = (
        f"{result.graph.name} on {result.cluster.name}, {found.optimizer} in "
        f"{found.precision}: the best of "
        f"{format_count(n, 'scenario')} by strategy{epoch}; * the fastest that fits, ! does not "
        f"fit in {room}."
    )
    return textwrap.fill(text, _WIDTH)


def _row(found: Survey, row: int, epoch_s: object) -> list[str]:
    result = found.result
    mark = "*" if found.best.get(int(found.n_devices[row])) == row else " "
    fits = " " if result.fits[row] else "!"
    word = BOTTLENECKS[result.bottleneck[row]]
    epoch = "" if epoch_s is None else format_seconds(float(np.asarray(epoch_s)[row]))
    return [
        f"{mark} {short_label(result.table.strategy(row))}",
        format_seconds(float(result.compute_s[row])),
        format_seconds(float(result.communication_s[row])),
        format_seconds(float(result.step_s[row])),
        epoch,
        f"{_gib(float(result.memory_bytes[row]))}{fits}".rstrip(),
        f"{100 * float(result['efficiency'][row]):.0f}%",
        _SHORT.get(word, word),
    ]


def _gib(n_bytes: float) -> str:
    gib = n_bytes / 2**30
    return f"{gib:.2f}" if gib < 10 else format_number(gib)


def short_label(strategy: Strategy) -> str:
    """Return a strategy in few letters: words where they fit, initials where they do not.

    Examples
    --------
    >>> short_label(Strategy(data=16, filter=4))
    'data 16 filter 4'
    >>> short_label(Strategy(data=16, tensor=8, pipeline=8, micro_batches=32))
    'd16 p8 t8 m32'
    >>> short_label(Strategy(data=1024, shard=3, tensor=2))
    'z3:1024 t2'
    """
    degrees = {n: getattr(strategy, n) for n in DEGREES if getattr(strategy, n) > 1}
    words = [f"{_word(name, strategy)} {n}" for name, n in degrees.items()] or ["serial"]
    extras = [f"m{strategy.micro_batches}"] if strategy.micro_batches > 1 else []
    extras += [f"v{strategy.virtual_stages}"] if strategy.virtual_stages > 1 else []
    extras += ["recompute"] if strategy.recompute else []
    label = " ".join([*words, *extras])
    if len(label) <= _LABEL:
        return label
    initials = [f"{_initial(name, strategy)}{n}" for name, n in degrees.items()] or ["serial"]
    return " ".join([*initials, *(e.replace("recompute", "reco") for e in extras)])


def _word(name: str, strategy: Strategy) -> str:
    if name == "data" and strategy.shard:
        return f"zero{strategy.shard}"
    if name == "pipeline":
        names = {"sequential": "layer", "1f1b": "pipeline"}
        return names.get(strategy.schedule, strategy.schedule)
    return name


def _initial(name: str, strategy: Strategy) -> str:
    if name == "data" and strategy.shard:
        return f"z{strategy.shard}:"
    # a channel has the c already
    return "x" if name == "context" else _word(name, strategy)[0]


def _notes(found: Survey) -> str:
    """Say what each strategy may not exceed, and what is asked of a pipeline."""
    best = [
        f"{format_count(n, 'device')}: {found.result.table.strategy(row)}"
        for n, row in found.best.items()
    ]
    limits = textwrap.indent(definitions(found.limits), "  ") if found.limits else ""
    parts = [f"Largest degrees:\n{limits}"] if limits else []
    if best:
        lines = [
            textwrap.fill(x, _WIDTH, initial_indent="  ", subsequent_indent="    ") for x in best
        ]
        parts.insert(0, "Fastest that fit:\n" + "\n".join(lines))
    return "\n\n".join(parts)


def show_knees(found: Survey, knees: Mapping[str, Knee], n_samples: int | None = None) -> str:
    """Return where more devices stop paying, with device-hours and money of an epoch there."""
    frame = found.frame(n_samples)
    least = next(iter(knees.values())).least_gain
    rows = []
    for name, knee in knees.items():
        at = frame[(frame["n_devices"] == knee.n_devices) & frame["fits"]]
        own = at["strategy"].isin([name, "serial"] if knee.n_devices == 1 else [name])
        row = at[at["best"]] if name == "best" else at[own]
        rows.append(_knee_row(name, knee, row.iloc[0], n_samples is not None))
    header = ["strategy", "devices", "doubled", "samples/s"]
    header += ["epoch", "device-h"] if n_samples is not None else []
    has_price = "money" in frame and n_samples is not None
    header += [found.result.cluster.currency] if has_price else []
    title = textwrap.fill(
        f"{found.result.graph.name} on {found.result.cluster.name}: devices beyond which "
        f"more add less than {100 * least:.3g} % to the rate for every doubling, by strategy; "
        "'> n': up to n, the most looked at, more still pay; doubled: what the next doubling "
        "would add.",
        _WIDTH,
    )
    shown = [row[: len(header)] for row in rows]
    return f"{title}\n\n{table(header, _with_short_names(header, shown))}"


def _with_short_names(header: list[str], rows: list[list[str]]) -> list[list[str]]:
    """Cut names that would make a table wider than a terminal."""
    others = [
        max(map(len, column)) + 2
        for column in zip(header[1:], *(r[1:] for r in rows), strict=True)
    ]
    room = _WIDTH - sum(others)
    return [[n if len(n) <= room else f"{n[: room - 2]}..", *rest] for n, *rest in rows]


def _knee_row(name: str, knee: Knee, row: object, has_epoch: bool) -> list[str]:
    figures: Mapping[str, float] = row  # type: ignore[assignment]
    cells = [
        name,
        f"{'' if knee.is_reached else '> '}{knee.n_devices}",
        f"{100 * knee.gain:+.1f} %" if knee.is_reached else "",
        format_number(float(figures["samples_per_s"])),
    ]
    if has_epoch:
        cells += [
            format_seconds(float(figures["epoch_s"])),
            format_number(float(figures["device_hours"])),
        ]
        cells += [format_number(float(figures["money"]))] if "money" in figures else []
    return cells
