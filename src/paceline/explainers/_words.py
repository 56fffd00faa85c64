"""Powers in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.units import format_number

NEGLIGIBLE = 0.05
_NEAR = 0.1
_KNOWN = {
    0.5: "with the square root of {name}",
    1.0: "in proportion to {name}",
    1.5: "with {name}^1.5",
    2.0: "with the square of {name}",
    3.0: "with the cube of {name}",
}


def power_in_words(name: str, power: float) -> str:
    """Return what a power of a parameter does to the time.

    Examples
    --------
    >>> power_in_words("kernel_size", 2.04)
    'grows with the square of kernel_size'
    >>> power_in_words("n_devices", -0.98)
    'falls in inverse proportion to n_devices'
    >>> power_in_words("learning_rate", 0.01)
    'no measurable effect of learning_rate'
    """
    if abs(power) < NEGLIGIBLE:
        return f"no measurable effect of {name}"
    verb = "grows" if power > 0 else "falls"
    nearest = min(_KNOWN, key=lambda known: abs(known - abs(power)))
    if abs(nearest - abs(power)) > _NEAR:
        return f"{verb} like {name}^{format_number(power, 3)}"
    how = _KNOWN[nearest].format(name=name)
    if power > 0:
        return f"grows {how}"
    if nearest == 1.0:
        return f"falls in inverse proportion to {name}"
    return f"falls {how}"


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
