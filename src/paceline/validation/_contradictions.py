"""Where the publications contradict themselves, and whether they really do.

A figure that disagrees is kept as printed and never a target. Each finder reads the tables
anew and says what disagrees; the check passes when that is what was recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from paceline.space import load_space
from paceline.validation._arithmetic import at_bounds, outside_bounds, squares
from paceline.validation._chapter3 import CHAPTER3_FINDERS
from paceline.validation._checks import Check, check_words
from paceline.validation._facts import Contradiction, Facts
from paceline.validation._printed import Figure

Finder = Callable[[Facts, Contradiction], list[str]]


def check_contradictions(facts: Facts) -> list[Check]:
    """Check that every recorded contradiction is there, and is all there is of its kind."""
    return [_check(facts, contradiction) for contradiction in facts.contradictions]


def _check(facts: Facts, contradiction: Contradiction) -> Check:
    found = FINDERS[contradiction.name](facts, contradiction)
    return check_words(
        f"known contradiction: {contradiction.name}",
        contradiction.where,
        allowed=("; ".join(contradiction.recorded),),
        got="; ".join(found) or "none",
        kind="contradiction",
    )


def _find_wrong_squares(facts: Facts, _: Contradiction) -> list[str]:
    return [
        f"{framework} {penalty}: {rmse}^2 = {float(rmse.number) ** 2:.2f}, not {mse}"
        for framework, penalty, mse, rmse in squares(facts)
        if abs(math.sqrt(mse.number) - float(rmse.number)) > rmse.last_digit * (1 + 1e-9)
    ]


def _find_turned_signs(framework: str, facts: Facts, _: Contradiction) -> list[str]:
    free, penalised = (facts.column(table, framework).terms for table in ("4.2", "4.3"))
    return [name for name in free if free[name][1].number * penalised[name][1].number < 0]


def _find_swapped_constants(facts: Facts, _: Contradiction) -> list[str]:
    free, penalised = (
        {name: column.constant for name, column in facts.table(table).columns.items()}
        for table in ("4.2", "4.3")
    )
    swapped = []
    for name, figure in free.items():
        nearest = min(penalised, key=lambda other: abs(_gap(figure, penalised[other])))
        if nearest != name:
            swapped.append(
                f"{name} {figure.number} is nearest to {nearest} {penalised[nearest].number}"
            )
    return swapped


def _gap(one: Figure, other: Figure) -> float:
    return float(one.number - other.number)


def _find_other_powers_in_chapter(facts: Facts, _: Contradiction) -> list[str]:
    columns = facts.table("4.3").columns
    fitted = {name: str(column.powers["n_devices"].number) for name, column in columns.items()}
    return _differing(fitted, _device_powers(facts, "4.5"))


def _find_other_powers_in_papers(facts: Facts, _: Contradiction) -> list[str]:
    return _differing(_device_powers(facts, "4.5"), _device_powers(facts, "SSCI II"))


def _find_other_power_in_text(facts: Facts, contradiction: Contradiction) -> list[str]:
    return _differing(_device_powers(facts, "SSCI II"), contradiction.stated)


def _find_dearer_than_stated(
    group: str, table: str, facts: Facts, contradiction: Contradiction
) -> list[str]:
    """Return where another level than the one called the dearest is dearer than it."""
    found = []
    for framework, stated in contradiction.stated.items():
        levels = facts.column(table, framework).levels[group]
        dearest = max(levels, key=lambda level: levels[level].number)
        if dearest != stated:
            found.append(_above(framework, levels, dearest, stated))
    return found


def _find_cheaper_than_stated(
    group: str, table: str, facts: Facts, contradiction: Contradiction
) -> list[str]:
    """Return where another level than the one called the best is cheaper than it."""
    found = []
    for framework, stated in contradiction.stated.items():
        levels = facts.column(table, framework).levels[group]
        cheapest = min(levels, key=lambda level: levels[level].number)
        if cheapest != stated:
            found.append(_above(framework, levels, stated, cheapest))
    return found


def _find_unfitted(facts: Facts, _: Contradiction) -> list[str]:
    column = facts.column("5.2", "pytorch")
    fitted = {*column.terms, *column.levels, *column.powers}
    varied = [p.name for p in load_space("table_5_1").parameters if len(p.values) > 1]
    return [name for name in varied if name not in fitted]


def _find_two_errors(facts: Facts, _: Contradiction) -> list[str]:
    first = facts.table("journal 4").cells["l2_mape_percent"]
    second = facts.table("journal 5").cells["differential_evolution_regularised"]
    return [f"{n} {first[n]} % and {second[n]} %" for n in first if first[n] != second[n]]


def _find_raised_errors(facts: Facts, _: Contradiction) -> list[str]:
    cells = facts.table("journal 5").cells
    free = cells["differential_evolution"]
    penalised = cells["differential_evolution_regularised"]
    return [
        f"{name} {free[name]} % to {penalised[name]} %"
        for name in sorted(free)
        if penalised[name].number > free[name].number
    ]


def _device_powers(facts: Facts, table: str) -> dict[str, str]:
    return {n: str(f.number) for n, f in facts.table(table).cells["n_devices"].items()}


def _differing(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    shared = sorted(set(first) & set(second))
    return [f"{n} {first[n]} and {second[n]}" for n in shared if first[n] != second[n]]


def _above(framework: str, levels: Mapping[str, Figure], dear: str, cheap: str) -> str:
    return f"{framework} {dear} {levels[dear].number} is above {cheap} {levels[cheap].number}"


FINDERS: dict[str, Finder] = {
    "rmse-against-mse": _find_wrong_squares,
    "signs-mxnet": partial(_find_turned_signs, "mxnet"),
    "signs-pytorch": partial(_find_turned_signs, "pytorch"),
    "signs-tensorflow": partial(_find_turned_signs, "tensorflow"),
    "swapped-constants": _find_swapped_constants,
    "outside-bounds": lambda facts, _: outside_bounds(facts),
    "at-bounds": lambda facts, _: at_bounds(facts),
    "device-powers-in-chapter": _find_other_powers_in_chapter,
    "device-powers-in-papers": _find_other_powers_in_papers,
    "device-power-in-text": _find_other_power_in_text,
    "dearest-optimizer": partial(_find_dearer_than_stated, "optimizer", "4.2"),
    "better-padding": partial(_find_cheaper_than_stated, "padding", "4.3"),
    "unfitted-parameter": _find_unfitted,
    "regularised-mape": _find_two_errors,
    "regularising-costs-accuracy": _find_raised_errors,
    **CHAPTER3_FINDERS,
}
