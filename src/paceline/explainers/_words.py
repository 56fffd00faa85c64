"""Powers in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paceline.units import format_number

NEGLIGIBLE = 0.05
_SLIGHT = 0.15  # powers up to here are felt only over a wide range
_EXACT, _NEAR = 0.025, 0.1  # of a power that has a name
_KNOWN = {
    1 / 3: "with the cube root of",
    0.5: "with the square root of",
    1.0: "in proportion to",
    2.0: "with the square of",
    3.0: "with the cube of",
}


def power_in_words(name: str, power: float) -> str:
    """Return what a power of a parameter does to the time.

    Examples
    --------
    >>> power_in_words("kernel_size", 2.04)
    'grows with the square of kernel_size'
    >>> power_in_words("n_devices", -0.93)
    'falls nearly in inverse proportion to n_devices'
    >>> power_in_words("learning_rate", 0.01)
    'no measurable effect of learning_rate'
    """
    if abs(power) < NEGLIGIBLE:
        return f"no measurable effect of {name}"
    return f"{'grows' if power > 0 else 'falls'} {_how(name, power)}"


def powers_in_words(powers: Mapping[str, float]) -> str:
    """Return what several powers do together, the strongest first.

    Examples
    --------
    >>> powers_in_words({"depth": 0.1, "width": 2.0, "batch": 1.0, "seq_len": 1.0, "stride": -1.3})
    'grows with the square of width, in proportion to batch and seq_len, and slightly with depth; \
falls like stride^-1.3'
    """
    sentences = []
    for verb, sign in (("grows", 1), ("falls", -1)):
        parts = _grouped({n: p for n, p in powers.items() if sign * p >= NEGLIGIBLE})
        if parts:
            *first, last = parts
            glue = (
                ", and " if len(first) > 1 or any(" and " in part for part in first) else " and "
            )
            sentences.append(f"{verb} {', '.join(first)}{glue if first else ''}{last}")
    return "; ".join(sentences)


def _grouped(powers: Mapping[str, float]) -> list[str]:
    """Return one phrase per kind of power, with all the names of that kind."""
    names: dict[str, list[str]] = {}
    for name in sorted(powers, key=lambda n: -abs(powers[n])):
        phrase = _phrase(powers[name])
        named = name if phrase else _power(name, powers[name])
        names.setdefault(phrase or "like", []).append(named)
    return [f"{_plural(phrase, group)} {listed(group)}" for phrase, group in names.items()]


def listed(parts: Iterable[str]) -> str:
    """Return parts as a person lists them.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _plural(phrase: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return phrase
    for word in ("root of", "square of", "cube of"):
        if phrase.endswith(word):
            return f"{phrase.removesuffix(' of')}s of"
    return phrase


def _how(name: str, power: float) -> str:
    phrase = _phrase(power)
    return f"{phrase} {name}" if phrase else f"like {_power(name, power)}"


def _power(name: str, power: float) -> str:
    return f"{name}^{format_number(power, 3)}"


def _phrase(power: float) -> str | None:
    """Return how a time goes with something to a power; None when that power has no name."""
    size = abs(power)
    if size < _SLIGHT:
        return "slightly with"
    nearest = min(_KNOWN, key=lambda known: abs(known - size))
    gap = abs(nearest - size)
    if gap > min(_NEAR, _NEAR * nearest):
        return None
    phrase = _KNOWN[nearest]
    if nearest == 1.0 and power < 0:
        phrase = "in inverse proportion to"
    if gap <= _EXACT * nearest:
        return phrase
    return f"{'nearly' if nearest == 1.0 else 'roughly'} {phrase}"


def rank_in_words(ranked: Sequence[tuple[str, float]], margins: Mapping[str, float] | None) -> str:
    """Return levels from dear to cheap, with ~ between those that the data cannot tell apart.

    A > stands only where all levels before it are dearer than all behind it. Without margins
    nothing is known about the order, and that is said.

    Examples
    --------
    >>> rank_in_words([("adam", 2.0), ("sgd", 0.1), ("none", 0.0)], {"sgd": 0.5})
    'adam > sgd ~ none'
    >>> rank_in_words([("adam", 2.0), ("sgd", 0.0)], None)
    'adam, sgd (order not tested)'
    """
    names = [level for level, _ in ranked]
    if margins is None:
        return ", ".join(names) + " (order not tested)"
    text = names[0]
    for i in range(1, len(ranked)):
        dearer = all(
            cost - less > max(margins.get(dear, 0.0), margins.get(cheap, 0.0))
            for dear, cost in ranked[:i]
            for cheap, less in ranked[i:]
        )
        text += f" {'>' if dearer else '~'} {names[i]}"
    return text


def scaling_verdict(
    power: float, ideal: float, low: float | None = None, high: float | None = None
) -> str:
    """Return how a device power compares with the ideal of its time basis.

    Within 0.05 of the ideal counts as ideal, within 0.15 as close; the thesis reads -1.01 and
    -0.94 as good scaling and -0.74 as sub-optimal.
    """
    if low is not None and high is not None and low <= ideal <= high:
        return "not distinguishable from ideal"
    if ideal - power > NEGLIGIBLE:
        return "better than ideal"
    gap = power - ideal
    if gap <= NEGLIGIBLE:
        return "ideal"
    return "close to ideal" if gap <= 0.15 else "sub-optimal"
