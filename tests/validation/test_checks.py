"""Every check passes on the shipped facts and can fail on others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from paceline.space import load_space
from paceline.validation import Check, Facts, generate_study
from paceline.validation._arithmetic import check_counts, check_spaces
from paceline.validation._checks import check_number, check_words, cite
from paceline.validation._contradictions import FINDERS
from paceline.validation._recovery import N_FIT, check_study
from paceline.validation._validate import _FACT_STEPS

Sources = dict[str, dict[str, Any]]
Edit = Callable[[Sources], Any]


def column(sources: Sources, table: str, framework: str) -> dict[str, Any]:
    source = "thesis_chapter5" if table == "5.2" else "thesis_chapter4"
    return entry(sources, source, table)["columns"][framework]


def entry(sources: Sources, source: str, table: str) -> dict[str, Any]:
    return next(e for e in sources[source]["table"] if e["id"] == table)


def cells(source: str, table: str, row: str, framework: str, value: Any) -> Edit:
    """Return an edit that sets one cell."""

    def edit(sources: Sources) -> None:
        entry(sources, source, table)["cells"][row][framework] = value

    return edit


def level(table: str, framework: str, group: str, name: str, value: str) -> Edit:
    """Return an edit that sets one level's coefficient."""

    def edit(sources: Sources) -> None:
        column(sources, table, framework)["levels"][group][name] = [Decimal(value), 0]

    return edit


def power(table: str, framework: str, name: str, value: str) -> Edit:
    """Return an edit that sets one extrinsic power."""

    def edit(sources: Sources) -> None:
        column(sources, table, framework)["powers"][name] = [Decimal(value), 0]

    return edit


def term(table: str, framework: str, name: str, key: str, value: str) -> Edit:
    """Return an edit that sets a or p of one term."""

    def edit(sources: Sources) -> None:
        column(sources, table, framework)["terms"][name][key] = [Decimal(value), 0]

    return edit


def constant(table: str, framework: str, value: str) -> Edit:
    """Return an edit that sets C."""

    def edit(sources: Sources) -> None:
        column(sources, table, framework)["constant"] = [Decimal(value), 0]

    return edit


def stranger(table: str, framework: str) -> Edit:
    """Return an edit that adds a parameter which the space does not know."""

    def edit(sources: Sources) -> None:
        terms = column(sources, table, framework)["terms"]
        terms["width"] = terms["filters"]

    return edit


def statement(source: str, name: str, framework: str, value: str) -> Edit:
    """Return an edit that changes what the text is recorded to say."""

    def edit(sources: Sources) -> None:
        found = next(c for c in sources[source]["contradiction"] if c["id"] == name)
        found["stated"][framework] = value

    return edit


CH3, CH4, CH5 = "thesis_chapter3", "thesis_chapter4", "thesis_chapter5"
THREE = ("mxnet", "pytorch", "tensorflow")

# an edit of the facts, and how the names of the checks begin that must then fail
EDITS: list[tuple[Edit, set[str]]] = [
    *(
        (
            cells(CH4, "4.4", f"{penalty}_rmse", f, Decimal("12.00")),
            {
                f"square root of the MSE, {f}, {penalty}",
                "known contradiction: rmse-against-mse",
                "figures equal to those of thesis table 4.4",
            },
        )
        for f in ("mxnet", "tensorflow")
        for penalty in ("l1", "l2")
    ),
    (
        cells(CH4, "4.4", "l1_rmse", "pytorch", Decimal("21.23")),
        {
            "known contradiction: rmse-against-mse",
            "figures equal to those of thesis table 4.4",
        },
    ),
    (
        cells("journal", "journal 6", "n_devices", "mxnet", Decimal("-1.01")),
        {"figures equal to those of SSCI table II"},
    ),
    (
        cells(CH5, "5.4", "n_devices", "pytorch", [Decimal("-0.94"), Decimal("0.03")]),
        {"figures equal to those of thesis table 5.2"},
    ),
    (
        cells(CH5, "5.3", "random_forest", "pytorch", Decimal("0.06")),
        {"error of the expression beside that of the random forest"},
    ),
    (cells("ssci2022", "SSCI I", "random_forest", "mxnet", Decimal("3.18")), {"largest error"}),
    (cells("journal", "journal 5", "random_forest", "mxnet", 30), {"largest error"}),
    (
        level("4.3", "pytorch", "padding", "valid", "0.57"),
        {
            "constants within the bounds",
            "known contradiction: outside-bounds",
            "known contradiction: better-padding",
        },
    ),
    (
        term("4.3", "pytorch", "dropout", "p", "-4.00"),
        {"known contradiction: at-bounds", "longest time over the space in s, pytorch"},
    ),
    (constant("4.3", "mxnet", "4.45"), {"shortest time", "longest time"}),
    (constant("5.2", "pytorch", "78.57"), {"shortest time", "longest time"}),
    *(
        (term("4.2", f, "filters", "p", "4.06"), {f"known contradiction: signs-{f}"})
        for f in THREE
    ),
    (constant("4.2", "pytorch", "1.267"), {"known contradiction: swapped-constants"}),
    (
        cells(CH4, "4.5", "n_devices", "mxnet", Decimal("-1.07")),
        {
            "known contradiction: device-powers-in-chapter",
            "known contradiction: device-powers-in-papers",
        },
    ),
    (
        statement("ssci2022", "device-power-in-text", "tensorflow", "-0.74"),
        {"known contradiction: device-power-in-text"},
    ),
    (
        level("4.2", "mxnet", "optimizer", "adam", "16.58"),
        {"known contradiction: dearest-optimizer"},
    ),
    (
        lambda s: column(s, "5.2", "pytorch")["levels"].update(
            padding={"same": [1, 0], "valid": [2, 0]}
        ),
        {"known contradiction: unfitted-parameter", "number of constants"},
    ),
    (
        cells("journal", "journal 5", "differential_evolution_regularised", "pytorch", 27),
        {
            "known contradiction: regularised-mape",
            "known contradiction: regularising-costs-accuracy",
        },
    ),
    *(
        (level("4.3", f, "padding", "same", "-9"), {f"dearest padding, {f}", "constants within"})
        for f in THREE
    ),
    *((level("4.3", f, "dataset", "mnist", "9"), {f"dearest dataset, {f}"}) for f in THREE),
    *(
        (level("4.3", f, "activation", "sigmoid", "9"), {f"dearest activation, {f}"})
        for f in THREE
    ),
    (level("4.3", "mxnet", "optimizer", "adam", "2.32"), {"dearest optimizer, mxnet"}),
    (level("4.3", "pytorch", "optimizer", "sgd", "3.43"), {"dearest optimizer, pytorch"}),
    (level("4.3", "tensorflow", "optimizer", "sgd", "2.02"), {"dearest optimizer, tensorflow"}),
    (level("5.2", "pytorch", "activation", "relu", "28"), {"dearest activation, pytorch"}),
    (level("5.2", "pytorch", "optimizer", "sgd", "37"), {"dearest optimizer, pytorch"}),
    (power("4.3", "tensorflow", "n_devices", "-0.90"), {"device scaling, tensorflow"}),
    (power("4.3", "mxnet", "n_devices", "-0.74"), {"device scaling, mxnet"}),
    (power("4.3", "pytorch", "n_devices", "-0.74"), {"device scaling, pytorch"}),
    (power("5.2", "pytorch", "n_devices", "-0.74"), {"device scaling, pytorch"}),
    (term("5.2", "pytorch", "learning_rate", "p", "-0.40"), {"effect of learning_rate"}),
    (power("5.2", "pytorch", "device_batch", "-0.30"), {"effect of device_batch"}),
    *(
        (
            cells(CH3, "3.2", f"{network}_step", f, Decimal("0.9999")),
            {
                f"step as the sum of its phases (3.1) in s, {network}, {f}",
                "known contradiction: steps-that-do-not-add-up",
            },
        )
        for network in ("cnn", "mlp", "autoencoder")
        for f in ("chainer", "mxnet", "tensorflow")
        if (network, f) not in (("mlp", "mxnet"), ("mlp", "tensorflow"))
    ),
    (
        cells(CH3, "3.3", "mlp_2", "chainer", Decimal("0.2845")),
        {"speedup of mlp, chainer on 2 devices", "known contradiction: more-than-linear"},
    ),
    (
        cells(CH3, "3.3", "mlp_2", "chainer", Decimal("-0.2945")),
        {"speedups above the number of devices", "known contradiction: falling-aggregation"},
    ),
    (
        cells(CH3, "3.4", "cnn_3", "mxnet", Decimal("0.99")),
        {"load imbalance factors above 1", "load imbalance factors that grow"},
    ),
    (
        cells(CH3, "3.4", "cnn_2", "mxnet", Decimal("1.16")),
        {"framework with the largest load imbalance factor"},
    ),
    (
        statement(CH3, "division-in-text", "chainer", "0.0003"),
        {"known contradiction: division-in-text"},
    ),
    (
        cells(CH3, "3.2", "autoencoder_backward", "tensorflow", Decimal("0.2174")),
        {"known contradiction: slowest-backward"},
    ),
    (
        cells(CH3, "3.3", "mlp_2", "mxnet", Decimal("0.2156")),
        {"known contradiction: falling-aggregation", "known contradiction: least-aggregation"},
    ),
    (
        cells(CH3, "3.5", "autoencoder_b2", "mxnet", Decimal("389.6701")),
        {"known contradiction: equal-coefficients", "known contradiction: regression-in-paper"},
    ),
    (
        cells(CH3, "3.5", "cnn_r2", "chainer", Decimal("0.98")),
        {"known contradiction: saturated-regression"},
    ),
]


# edits after which the other checks have no answer
STRANGERS = [*((t, f) for t in ("4.2", "4.3") for f in THREE), ("5.2", "pytorch")]


def fact_checks(facts: Facts) -> Iterator[Check]:
    for step in _FACT_STEPS.values():
        yield from step(facts)


def failing(facts: Facts) -> set[tuple[str, str]]:
    return {(check.name, check.source) for check in fact_checks(facts) if not check.passed}


def test_all_checks_pass_on_the_shipped_facts(facts: Facts) -> None:
    assert failing(facts) == set()


def test_no_two_checks_have_the_same_name_and_source(facts: Facts) -> None:
    names = [(check.name, check.source) for check in fact_checks(facts)]
    assert len(set(names)) == len(names) == 85


@pytest.mark.parametrize(("edit", "beginnings"), EDITS)
def test_a_changed_fact_fails_the_checks_that_read_it(
    facts_with: Callable[[Edit], Facts], edit: Edit, beginnings: set[str]
) -> None:
    failed = {name for name, _ in failing(facts_with(edit))}
    for beginning in beginnings:
        assert any(name.startswith(beginning) for name in failed), (beginning, failed)


@pytest.mark.parametrize(("table", "framework"), STRANGERS)
def test_a_parameter_unknown_to_the_space_fails_the_counts_and_the_names(
    facts_with: Callable[[Edit], Facts], table: str, framework: str
) -> None:
    facts = facts_with(stranger(table, framework))
    failed = [c for c in (*check_counts(facts), *check_spaces(facts)) if not c.passed]
    assert [check.source for check in failed] == [cite(table)] * 2
    assert failed[1].got == "width"


def test_a_level_unknown_to_the_space_fails_the_names(
    facts_with: Callable[[Edit], Facts],
) -> None:
    facts = facts_with(level("4.3", "mxnet", "activation", "gelu", "1"))
    assert [c.got for c in check_spaces(facts) if not c.passed] == ["levels of activation"]


def test_every_check_of_the_facts_can_fail(
    facts: Facts, facts_with: Callable[[Edit], Facts]
) -> None:
    # Names may hold counts that an edit changes; what comes before the comma does not.
    stems = {(check.name.split(", of")[0], check.source) for check in fact_checks(facts)}
    failed = {
        (name.split(", of")[0], source)
        for edit, _ in EDITS
        for name, source in failing(facts_with(edit))
    }
    # tested apart: what reads the space
    names = ("number of constants", "parameters of")
    assert {s for s in stems - failed if not s[0].startswith(names)} == set()


def test_the_count_of_the_space_can_fail(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    monkeypatch.setattr(
        "paceline.validation._arithmetic.load_space", lambda _: load_space("table_5_1")
    )
    assert [c.source for c in check_counts(facts) if not c.passed] == ["thesis table 4.1"]


def test_every_contradiction_has_a_finder_and_every_finder_a_contradiction(facts: Facts) -> None:
    assert set(FINDERS) == {contradiction.name for contradiction in facts.contradictions}


@pytest.mark.parametrize("name", sorted(FINDERS))
def test_contradictions_are_really_contradictory(facts: Facts, name: str) -> None:
    contradiction = next(c for c in facts.contradictions if c.name == name)
    assert FINDERS[name](facts, contradiction) == list(contradiction.recorded)


def test_a_contradiction_that_is_settled_is_reported_as_none(
    facts_with: Callable[[Edit], Facts],
) -> None:
    facts = facts_with(level("4.2", "mxnet", "optimizer", "adam", "16.58"))
    found = {c.name: c for c in fact_checks(facts)}["known contradiction: dearest-optimizer"]
    assert not found.passed
    assert found.got == "none"


@pytest.mark.filterwarnings("ignore::paceline.errors.BoundWarning")
@pytest.mark.parametrize("framework", ["tensorflow", "mxnet"])
def test_noise_fails_the_error_on_unseen_rows(framework: str) -> None:
    study = generate_study(framework, n_rows=N_FIT + 100, noise=0.3)
    assert not check_study(framework, study)[-1].passed


@pytest.mark.parametrize("framework", ["tensorflow", "mxnet"])
def test_a_wrong_power_fails_the_recovery(framework: str) -> None:
    study = generate_study(framework, n_rows=N_FIT + 100, noise=0.0)
    shifted = {name: power + 0.02 for name, power in study.truth.powers.items()}
    checks = check_study(framework, replace(study, truth=replace(study.truth, powers=shifted)))
    assert [check.passed for check in checks] == [False, False, True]


def test_a_number_at_its_tolerance_passes_and_beyond_it_fails() -> None:
    def check(got: float) -> Check:
        return check_number("n", "s", expected=0.1, got=got, tolerance=0.2, kind="arithmetic")

    assert check(0.3).passed  # 0.1 + 0.2 in floats is a little more
    assert not check(0.301).passed
    assert not check(float("nan")).passed


def test_words_must_be_among_the_allowed_ones() -> None:
    check = check_words("n", "s", allowed=("good", "fair"), got="bad", kind="reading")
    assert not check.passed
    assert check.expected == "good or fair"
    assert str(check) == "FAILED: n (s): expected 'good or fair', got 'bad'"


def test_tables_are_cited_with_their_document() -> None:
    assert [cite(t) for t in ("5.2", "SSCI I", "journal 6")] == [
        *("thesis table 5.2", "SSCI table I", "journal table 6")
    ]
