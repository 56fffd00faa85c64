"""Printed figures against each other."""

from __future__ import annotations

import math
from collections.abc import Mapping

from paceline.space import Space, load_space
from paceline.validation._checks import Check, check_number, check_words, cite
from paceline.validation._facts import Facts
from paceline.validation._printed import Column, Figure, Table
from paceline.validation._ranges import time_range_s

# numeric parameters with a and p each, levels, extrinsic powers, C
_LENET_CONSTANTS = "6 x 2 + 10 + 2 + 1 = 25"
_RESATTNET_CONSTANTS = "3 x 2 + 5 + 2 + 1 = 14"


def check_counts(facts: Facts) -> list[Check]:
    """Check how many constants the tables hold, and the space of table 4.1 asks for."""
    counts = [("4.1", _LENET_CONSTANTS, _count_space(load_space("table_4_1")))]
    counts += [(n, _LENET_CONSTANTS, _count_columns(facts.table(n))) for n in ("4.2", "4.3")]
    counts += [("5.2", _RESATTNET_CONSTANTS, _count_columns(facts.table("5.2")))]
    return [
        _check_words("number of constants", cite(table), expected, got)
        for table, expected, got in counts
    ]


def check_spaces(facts: Facts) -> list[Check]:
    """Check that every column speaks of the parameters and levels of its space."""
    return [
        _check_words(
            f"parameters of {framework} unknown to the space",
            cite(table),
            "none",
            ", ".join(_strangers(column, load_space(facts.table(table).space))) or "none",
        )
        for table, framework, column in facts.columns()
    ]


def check_squares(facts: Facts) -> list[Check]:
    """Check that the square root of the MSE is the RMSE, but where it is known not to be.

    One unit in the last digit is allowed: some of the printed roots are cut, not rounded.
    """
    return [
        check_number(
            f"square root of the MSE, {framework}, {penalty}",
            cite("4.4"),
            expected=float(rmse.number),
            got=math.sqrt(mse.number),
            tolerance=rmse.last_digit,
            kind="arithmetic",
        )
        for framework, penalty, mse, rmse in squares(facts)
        if framework != "pytorch"  # see the contradiction rmse-against-mse
    ]


def squares(facts: Facts) -> list[tuple[str, str, Figure, Figure]]:
    """Return framework, penalty, MSE and RMSE of every fit in table 4.4."""
    cells = facts.table("4.4").cells
    return [
        (framework, penalty, cells[f"{penalty}_mse"][framework], rmse)
        for penalty in ("l1", "l2")
        for framework, rmse in cells[f"{penalty}_rmse"].items()
    ]


def check_repeats(facts: Facts) -> list[Check]:
    """Check figures that are printed twice and agree."""
    power = {"n_devices": {"pytorch": facts.column("5.2", "pytorch").powers["n_devices"]}}
    errors = facts.table("5.3").cells
    return [
        _check_equal("journal 4", facts.table("4.4").cells, facts.table("journal 4").cells, "4.4"),
        _check_equal(
            "journal 6", facts.table("SSCI II").cells, facts.table("journal 6").cells, "SSCI II"
        ),
        _check_equal("5.4", power, facts.table("5.4").cells, "5.2"),
        check_number(
            "error of the expression beside that of the random forest",
            cite("5.3"),
            expected=float(errors["random_forest"]["pytorch"].number),
            got=float(errors["differential_evolution"]["pytorch"].number),
            tolerance=0.0,
            kind="arithmetic",
        ),
    ]


def check_worst(facts: Facts) -> list[Check]:
    """Check that the support vector machine has the largest error in every framework."""
    checks = []
    for name in ("SSCI I", "journal 5"):
        cells = facts.table(name).cells
        worst = {_largest(cells, framework) for framework in cells["support_vector"]}
        got = ", ".join(sorted(worst))
        checks.append(_check_words("largest error", cite(name), "support_vector", got))
    return checks


def check_bounds(facts: Facts) -> list[Check]:
    """Check that all constants but the recorded one lie within the thesis' bounds."""
    n_all = sum(len(column.figures) for _, _, column in facts.columns())
    known = next(c for c in facts.contradictions if c.name == "outside-bounds")
    n_inside = n_all - len(outside_bounds(facts))
    expected = n_all - len(known.recorded)
    name = f"constants within the bounds, of {n_all}"
    source = f"{cite('4.2')}, 4.3 and 5.2"
    return [_check_count(name, source, expected, n_inside)]


def outside_bounds(facts: Facts) -> list[str]:
    """Return every printed constant that lies outside its bounds."""
    return [
        f"{table} {framework} {name} {figure.number}"
        for table, framework, column in facts.columns()
        for kind, figures in _by_kind(column).items()
        for name, figure in figures.items()
        if not facts.bounds[kind][0] <= figure.number <= facts.bounds[kind][1]
    ]


def at_bounds(facts: Facts) -> list[str]:
    """Return every printed constant that sits on one of its bounds."""
    return [
        f"{table} {framework} {name} {figure.number}"
        for table, framework, column in facts.columns()
        for kind, figures in _by_kind(column).items()
        for name, figure in figures.items()
        if figure.number in facts.bounds[kind]
    ]


def check_ranges(facts: Facts) -> list[Check]:
    """Check the extreme times that printed constants give over their space."""
    checks = []
    for fact in facts.derived:
        expression = facts.column(fact.table, fact.framework).to_expression()
        shortest, longest = time_range_s(expression, load_space(facts.table(fact.table).space))
        checks.append(
            check_number(
                f"{fact.extreme} time over the space in s, {fact.framework}",
                f"computed from {cite(fact.table)}",
                expected=fact.time_s,
                got=shortest if fact.extreme == "shortest" else longest,
                tolerance=fact.tolerance_s,
                kind="arithmetic",
            )
        )
    return checks


def _by_kind(column: Column) -> dict[str, Mapping[str, Figure]]:
    return {
        "coefficients": column.coefficients,
        "powers": column.all_powers,
        "constant": {"C": column.constant},
    }


def _strangers(column: Column, space: Space) -> list[str]:
    names = [*column.terms, *column.levels, *column.powers]
    strangers = [name for name in names if name not in space.names]
    for name, group in column.levels.items():
        if name in space.names and set(group) != set(space[name].values):
            strangers.append(f"levels of {name}")
    return strangers


def _check_equal(
    table: str,
    expected: Mapping[str, Mapping[str, Figure]],
    got: Mapping[str, Mapping[str, Figure]],
    twin: str,
) -> Check:
    cells = [(row, framework) for row, figures in expected.items() for framework in figures]
    n_equal = sum(got[row][framework] == expected[row][framework] for row, framework in cells)
    name = f"figures equal to those of {cite(twin)}, of {len(cells)}"
    return _check_count(name, cite(table), len(cells), n_equal)


def _largest(cells: Mapping[str, Mapping[str, Figure]], framework: str) -> str:
    readable = {r: f[framework] for r, f in cells.items() if not f[framework].is_unreadable}
    return max(readable, key=lambda row: readable[row].number)


def _check_words(name: str, source: str, expected: str, got: str) -> Check:
    return check_words(name, source, allowed=(expected,), got=got, kind="arithmetic")


def _check_count(name: str, source: str, expected: int, got: int) -> Check:
    return check_number(name, source, expected=expected, got=got, tolerance=0.0, kind="arithmetic")


def _count_columns(table: Table) -> str:
    counts = {
        _sum_up(len(c.terms), sum(map(len, c.levels.values())), len(c.powers))
        for c in table.columns.values()
    }
    return "; ".join(sorted(counts))


def _count_space(space: Space) -> str:
    inner = [p for p in space.parameters if p.role == "intrinsic"]
    n_numeric = sum(p.kind == "numeric" for p in inner)
    n_levels = sum(len(p.values) for p in inner if p.kind == "categorical")
    return _sum_up(n_numeric, n_levels, len(space.extrinsic))


def _sum_up(n_numeric: int, n_levels: int, n_extrinsic: int) -> str:
    total = 2 * n_numeric + n_levels + n_extrinsic + 1
    return f"{n_numeric} x 2 + {n_levels} + {n_extrinsic} + 1 = {total}"
