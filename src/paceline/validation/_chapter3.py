"""Phases, aggregation, imbalance and regression as printed: chapter 3 and its IUCC version."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from paceline.estimators import (
    StepPhases,
    exposed_speedup,
    iucc_speedup,
    printed_speedup,
    sgd_step_s,
)
from paceline.validation._checks import Check, check_number, check_words, cite
from paceline.validation._facts import Contradiction, Facts
from paceline.validation._printed import Figure

NETWORKS = ("cnn", "mlp", "autoencoder")
FRAMEWORKS = ("chainer", "mxnet", "tensorflow")
DEVICES = (2, 3)
_PHASES = ("io", "h2d", "md", "forward", "backward", "update")

Finder = Callable[[Facts, Contradiction], list[str]]


def check_chapter3(facts: Facts) -> list[Check]:
    """Check the figures of chapter 3 against each other, its equations and its text."""
    return [*_check_sums(facts), *_check_speedups(facts), *_check_imbalance(facts)]


def printed_phases(facts: Facts, network: str, framework: str) -> StepPhases:
    """Return the phases of a step on one device, as printed in table 3.2."""
    cells = facts.table("3.2").cells
    seconds = {f"{p}_s": float(cells[f"{network}_{p}"][framework].number) for p in _PHASES}
    return StepPhases(**seconds)


def _check_sums(facts: Facts) -> list[Check]:
    """Check (3.1) on every column but those recorded not to add up."""
    known = _contradiction(facts, "steps-that-do-not-add-up").recorded
    return [
        check_number(
            f"step as the sum of its phases (3.1) in s, {network}, {framework}",
            cite("3.2"),
            expected=float(step.number),
            got=sgd_step_s(printed_phases(facts, network, framework)),
            tolerance=0.0001,  # one unit in the last digit of the phases
            kind="arithmetic",
        )
        for network, framework, step in _cells(facts, "3.2", "step")
        if not any(line.startswith(f"{network} {framework}") for line in known)
    ]


def _check_speedups(facts: Facts) -> list[Check]:
    one, many = _runs(facts, "mlp", "chainer", 2)
    source = "computed from thesis tables 3.2 and 3.3"
    expected = {"(3.7) as printed": 2.80, "IUCC (7)": 0.51, "ours, nothing hidden": 1.31}
    got = {
        "(3.7) as printed": printed_speedup(2, one, many),
        "IUCC (7)": iucc_speedup(2, one, many),
        "ours, nothing hidden": _exposed(facts, "mlp", "chainer", 2),
    }
    checks = [
        check_number(
            f"speedup of mlp, chainer on 2 devices, {name}",
            source,
            expected=value,
            got=got[name],
            tolerance=0.005,
            kind="arithmetic",
        )
        for name, value in expected.items()
    ]
    most = max(_exposed(facts, *run) / run[2] for run in _all_runs())
    words = "none" if most <= 1 else f"{most:.2f} times the devices"
    name = "speedups above the number of devices, ours"
    return [*checks, check_words(name, source, allowed=("none",), got=words, kind="arithmetic")]


def _check_imbalance(facts: Facts) -> list[Check]:
    cells = facts.table("3.4").cells
    rows = [(n, d) for n in NETWORKS for d in DEVICES]
    above = sum(cells[f"{n}_{d}"][f].number > 1 for n, d in rows for f in FRAMEWORKS)
    grown = sum(
        cells[f"{n}_3"][f].number > cells[f"{n}_2"][f].number for n in NETWORKS for f in FRAMEWORKS
    )
    largest = {max(FRAMEWORKS, key=lambda f: cells[f"{n}_{d}"][f].number) for n, d in rows}
    source = cite("3.4")
    return [
        _count("load imbalance factors above 1, of 18", source, 18, above),
        _count("load imbalance factors that grow with devices, of 9", source, 9, grown),
        check_words(
            "framework with the largest load imbalance factor",
            f"{source} and its text",
            allowed=("tensorflow",),
            got=", ".join(sorted(largest)),
            kind="reading",
        ),
    ]


def _count(name: str, source: str, expected: int, got: int) -> Check:
    return check_number(name, source, expected=expected, got=got, tolerance=0.0, kind="arithmetic")


def _find_wrong_sums(facts: Facts, _: Contradiction) -> list[str]:
    found = []
    for network, framework, step in _cells(facts, "3.2", "step"):
        total = sgd_step_s(printed_phases(facts, network, framework))
        if abs(total - float(step.number)) > 0.00015:
            found.append(f"{network} {framework} {total:.4f}, not {step.number}")
    return found


def _find_other_division(facts: Facts, contradiction: Contradiction) -> list[str]:
    stated_s = float(contradiction.stated["chainer"])
    chainer, mxnet = (facts.table("3.2").cells["cnn_md"][f].number for f in ("chainer", "mxnet"))
    difference_s = float(chainer - mxnet)
    if abs(difference_s - stated_s) < 0.0001:
        return []
    return [f"{contradiction.stated['chainer']} s in the text, {difference_s:.4f} s in the table"]


def _find_slower_backward(facts: Facts, _: Contradiction) -> list[str]:
    cells = facts.table("3.2").cells
    return [
        f"{network} {framework} {figure.number} is above mxnet {mxnet.number}"
        for network, framework, figure in _cells(facts, "3.2", "backward")
        if figure.number > (mxnet := cells[f"{network}_backward"]["mxnet"]).number
    ]


def _find_falling(facts: Facts, _: Contradiction) -> list[str]:
    cells = facts.table("3.3").cells
    return [
        f"{network} {framework} {two.number} to {three.number}"
        for network, framework, three in _cells(facts, "3.3", "3")
        if three.number < (two := cells[f"{network}_2"][framework]).number
    ]


def _find_faster_aggregation(facts: Facts, _: Contradiction) -> list[str]:
    cells = facts.table("3.3").cells
    return [
        f"{n} {d} {f} {cells[f'{n}_{d}'][f].number} is below mxnet {cells[f'{n}_{d}']['mxnet']}"
        for n, f, d in _all_runs()
        if cells[f"{n}_{d}"][f].number < cells[f"{n}_{d}"]["mxnet"].number
    ]


def _find_more_than_linear(facts: Facts, _: Contradiction) -> list[str]:
    speedups = {run: printed_speedup(run[2], *_runs(facts, *run)) for run in _all_runs()}
    return [f"{n} {f} {s:.2f} on {d}" for (n, f, d), s in speedups.items() if s > d]


def _find_equal_coefficients(facts: Facts, _: Contradiction) -> list[str]:
    cells = facts.table("3.5").cells
    return [
        f"{network} {one} and {other} {cells[f'{network}_b2'][one].number}"
        for network in NETWORKS
        for i, other in enumerate(FRAMEWORKS)
        for one in FRAMEWORKS[:i]
        if cells[f"{network}_b2"][one] == cells[f"{network}_b2"][other]
    ]


def _find_saturated(facts: Facts, _: Contradiction) -> list[str]:
    values = sorted(figure.number for _, _, figure in _cells(facts, "3.5", "r2"))
    n_points = 1 + len(DEVICES)
    if values[0] == 1:
        return []
    return [f"3 constants, {n_points} numbers of devices, R2 {values[0]} to {values[-1]}"]


def _find_other_regression(facts: Facts, _: Contradiction) -> list[str]:
    thesis, paper = facts.table("3.5").cells, facts.table("IUCC 10-18").cells
    pairs = [
        (f"{row} {f}", thesis[row][f].number, paper[row][f].number)
        for row in thesis
        for f in FRAMEWORKS
    ]
    turned = sum(one * other < 0 for _, one, other in pairs)
    rest = [f"{name} {one} and {other}" for name, one, other in pairs if one != abs(other)]
    return [f"{turned} of 9 signs of b1", *rest]


def _cells(facts: Facts, table: str, row: str) -> Iterator[tuple[str, str, Figure]]:
    for network in NETWORKS:
        for framework in FRAMEWORKS:
            yield network, framework, facts.table(table).cells[f"{network}_{row}"][framework]


def _all_runs() -> Iterator[tuple[str, str, int]]:
    return ((n, f, d) for n in NETWORKS for f in FRAMEWORKS for d in DEVICES)


def _runs(
    facts: Facts, network: str, framework: str, n_devices: int
) -> tuple[StepPhases, StepPhases]:
    """Return one device, and several: alike but for the aggregation, all that is printed."""
    one = printed_phases(facts, network, framework)
    comm_s = float(facts.table("3.3").cells[f"{network}_{n_devices}"][framework].number)
    return one, StepPhases(io_s=one.io_s, md_s=one.md_s, comm_s=comm_s)


def _exposed(facts: Facts, network: str, framework: str, n_devices: int) -> float:
    one, many = _runs(facts, network, framework, n_devices)
    return exposed_speedup(n_devices, one, many, comm_exposed_s=many.comm_s)


def _contradiction(facts: Facts, name: str) -> Contradiction:
    return next(c for c in facts.contradictions if c.name == name)


CHAPTER3_FINDERS: dict[str, Finder] = {
    "steps-that-do-not-add-up": _find_wrong_sums,
    "division-in-text": _find_other_division,
    "slowest-backward": _find_slower_backward,
    "falling-aggregation": _find_falling,
    "least-aggregation": _find_faster_aggregation,
    "more-than-linear": _find_more_than_linear,
    "equal-coefficients": _find_equal_coefficients,
    "saturated-regression": _find_saturated,
    "regression-in-paper": _find_other_regression,
}
