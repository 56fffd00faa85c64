from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import InvalidInputError
from paceline.estimators import PosynomialExpression, PosynomialRegressor, score
from paceline.estimators._posynomial._candidates import Candidates
from paceline.estimators._posynomial._choice_rows import choice_folds, labels_of
from paceline.estimators._posynomial._front import (
    CLOSE,
    FrontMember,
    choose,
    lowering,
    percentage_errors,
    standard_error,
)
from paceline.estimators._posynomial._problem import (
    NEUTRAL,
    Constants,
    Expected,
    PosynomialProblem,
    Strengths,
    log_sum,
)
from paceline.estimators._posynomial._rows import layout_of
from paceline.estimators._posynomial._simplify import express, merge_equal_terms
from paceline.estimators._posynomial._solve import Solution, renumber


def planted(n: int = 300, noise: float = 0.05, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Per-sample work, a collective and an overhead, with a level that slows the work."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "width": rng.choice([32.0, 64, 128, 256, 512], n),
            "device_batch": rng.choice([8.0, 16, 32, 64, 128], n),
            "n_devices": rng.choice([1.0, 2, 4, 8, 16], n),
            "kind": rng.choice(["fast", "slow"], n),
        }
    )
    slow = np.where(X["kind"] == "slow", 2.0, 1.0)
    work = 1e-5 * X["width"] ** 1.3 * X["device_batch"] ** 0.9 * slow
    comm = 2e-3 * X["width"] ** 0.5 * (1 - 1 / X["n_devices"])
    return X, (work + comm + 4e-3).to_numpy() * np.exp(noise * rng.normal(size=n))


def test_a_planted_sum_is_found_with_its_collective() -> None:
    X, y = planted()
    model = PosynomialRegressor().fit(X, y)
    terms = model.expression_.terms
    work = max(terms, key=lambda term: term.powers.get("device_batch", 0.0))
    assert work.powers["device_batch"] == pytest.approx(0.9, abs=0.1)
    assert work.powers["width"] == pytest.approx(1.3, abs=0.15)
    assert "n_devices" in {term.collective for term in terms}
    unseen, true = planted(2000, 0.0, seed=1)
    assert score(true, model.predict(unseen)).mape < 0.04


def test_what_does_not_matter_is_pruned() -> None:
    X, y = planted()
    rng = np.random.default_rng(7)
    X = X.assign(idle=rng.choice([1.0, 2, 4], len(X)), label=rng.choice(list("xyz"), len(X)))
    expression = PosynomialRegressor().fit(X, y).expression_
    assert all(abs(term.powers.get("idle", 0.0)) < 0.05 for term in expression.terms)
    assert max(expression.factors["label"].values()) < 1.03
    assert expression.n_constants <= 40


def test_the_default_has_the_fewest_terms_that_are_as_good_as_the_best() -> None:
    X, y = planted()
    model = PosynomialRegressor().fit(X, y)
    front = model.front_
    errors = [model.candidates_.errors(i) for i in range(len(front.members))]
    best = min(range(len(errors)), key=lambda i: errors[i].mean())
    counted = [np.minimum(e, np.quantile(errors[best], 0.95)) for e in errors]
    differences = [e - counted[best] for e in counted]
    rows = labels_of(X, None)
    good = [d.mean() <= CLOSE * standard_error(d, rows) for d in differences]
    n_terms = [m.n_terms for m, is_good in zip(front.members, good, strict=True) if is_good]
    assert front.members[front.chosen].n_terms == min(n_terms)


def test_expressions_are_compared_row_by_row() -> None:
    hard = np.tile([0.01, 0.9], 50)  # rows that both find hard say nothing about which is better
    members = [
        FrontMember(n_terms=k, n_constants=k, error=e, standard_error=0.04)
        for k, e in ((1, hard.mean() + 0.05), (2, hard.mean()))
    ]
    assert choose(members, [hard + 0.05, hard], np.arange(100), 40, None) == (1, 1)


def test_rows_that_no_expression_foresees_do_not_drown_the_others() -> None:
    long = np.linspace(0.01, 0.2, 100)
    short = long + 0.02
    short[:3], long[3:6] = 3.0, 3.0
    members = [
        FrontMember(n_terms=k, n_constants=k, error=e.mean(), standard_error=0.04)
        for k, e in ((1, short), (2, long))
    ]
    difference = short - long
    assert difference.mean() < standard_error(difference, np.arange(100))
    assert choose(members, [short, long], np.arange(100), 40, None) == (1, 1)


def test_what_is_shown_to_be_much_worse_is_not_chosen() -> None:
    long = np.full(20, 0.04)
    short = np.append(long[:-1], 1.0)  # one row decides, and a standard error of it is large
    members = [
        FrontMember(n_terms=k, n_constants=k, error=e.mean(), standard_error=0.006)
        for k, e in ((1, short), (2, long))
    ]
    difference = short - long
    assert difference.mean() <= standard_error(difference, np.arange(20))
    assert choose(members, [short, long], np.arange(20), 40, None) == (1, 1)


def test_a_front_of_an_older_file_is_read() -> None:
    data = {"n_terms": 2, "owns_levels": True, "n_constants": 9}
    member = FrontMember.from_dict(data | {"error": 0.1, "standard_error": None})
    assert (member.n_terms, member.n_constants, member.error) == (2, 9, 0.1)


def test_a_level_that_differs_in_one_term_only_costs_one_constant() -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "batch": rng.choice([1.0, 4, 16, 64, 256, 1024], 400),
            "device": rng.choice(list("abcdefgh"), 400),
        }
    )
    slow = np.where(X["device"] == "c", 5.0, 1.0)
    y = (0.01 * X["batch"] * slow + 1.0) * np.exp(0.01 * rng.normal(size=400))
    expression = PosynomialRegressor().fit(X, y).expression_
    work = max(expression.terms, key=lambda t: t.powers.get("batch", 0.0))
    factors = {
        level: expression.factors["device"][level] * work.factors["device"][level]
        for level in "abcdefgh"
    }
    assert factors["c"] / factors["a"] == pytest.approx(5.0, rel=0.1)
    assert expression.n_constants <= 12  # of 20 with the levels of both terms


def test_times_that_scatter_are_predicted_below_their_median() -> None:
    rng = np.random.default_rng(5)
    scatter = 0.4 * rng.normal(size=2001)
    lower = lowering(np.zeros(2001), scatter)
    assert lower == pytest.approx(0.4**2, abs=0.05)
    assert percentage_errors(np.full(2001, -lower), scatter).mean() < np.mean(
        percentage_errors(np.zeros(2001), scatter)
    )


def test_a_user_may_pick_another_number_of_terms() -> None:
    X, y = planted()
    model = PosynomialRegressor(n_terms=1).fit(X, y)
    assert len(model.expression_.terms) == 1


def test_same_data_and_seed_give_the_same_expression() -> None:
    X, y = planted(120)
    first, second = (PosynomialRegressor(random_state=3).fit(X, y).expression_ for _ in range(2))
    assert first.to_dict() == second.to_dict()


def test_plain_data_bring_the_expression_back() -> None:
    X, y = planted(120)
    expression = PosynomialRegressor().fit(X, y).expression_
    back = PosynomialExpression.from_dict(expression.to_dict())
    assert np.array_equal(back.evaluate(X), expression.evaluate(X))
    parts = expression.components(X)
    assert np.allclose(parts.sum(axis=1), expression.evaluate(X))


def test_a_zero_of_a_parameter_has_a_factor_of_its_own() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.choice([0.0, 1, 2, 4, 8], 200)})
    y = np.where(X["size"] == 0, 5.0, X["size"]) * np.exp(0.01 * rng.normal(size=200))
    model = PosynomialRegressor().fit(X, y)
    predicted = model.predict(pd.DataFrame({"size": [0.0, 8.0]}))
    assert predicted == pytest.approx([5.0, 8.0], rel=0.05)


def test_a_zero_may_end_one_term_and_leave_the_others() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "batch": rng.choice([8.0, 16, 32, 64], 300),
            "offload": np.where(rng.uniform(size=300) < 0.15, 0.0, rng.uniform(50, 600, 300)),
        }
    )
    truth = 0.01 * X["batch"] + 0.001 * X["offload"]
    model = PosynomialRegressor().fit(X, truth * np.exp(0.02 * rng.normal(size=300)))
    assert score(truth, model.predict(X)).mape < 0.03
    none = X["offload"] == 0
    assert score(truth[none], model.predict(X[none])).mape < 0.06
    again = PosynomialExpression.from_dict(model.expression_.to_dict())
    assert again == model.expression_


def test_what_is_shown_is_what_was_fitted_with_zeros_and_levels() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "a": rng.choice([0.0, 1, 2, 5], 200),
            "b": rng.uniform(1, 9, 200),
            "kind": rng.choice(["x", "y"], 200),
        }
    )
    times = 0.1 * X["b"] * np.where(X["kind"] == "x", 1.0, 3.0) + X["a"] ** 1.5
    model = PosynomialRegressor().fit(X, times * np.exp(0.05 * rng.normal(size=200)))
    layout, tried = model.layout_, model.candidates_
    problem = PosynomialProblem(
        rows=layout.encode(X),
        target=np.log(times.to_numpy()),
        weights=np.full(200, 1 / 200),
        strengths=NEUTRAL,
    )
    for place in range(len(tried.members)):
        solution = tried.solution(place)
        logs = log_sum(problem.log_terms(solution.constants, solution.kinds))
        assert express(solution, layout).evaluate(X) == pytest.approx(np.exp(logs), rel=1e-9)


def test_an_unseen_level_is_an_average_one() -> None:
    X, y = planted()
    model = PosynomialRegressor().fit(X, y)
    row = X.iloc[[0]].assign(kind="other")
    low, high = sorted(model.predict(X.iloc[[0]].assign(kind=k))[0] for k in ("fast", "slow"))
    assert low < model.predict(row)[0] < high


@pytest.mark.parametrize("name", ["n_terms", "max_terms", "max_constants"])
def test_a_count_below_one_is_refused(name: str) -> None:
    X, y = planted(30)
    with pytest.raises(InvalidInputError, match=f"{name} >= 1"):
        PosynomialRegressor(**{name: 0}).fit(X, y)


def test_groups_must_be_as_many_as_the_rows() -> None:
    X, y = planted(30)
    with pytest.raises(InvalidInputError, match="len\\(groups\\) == len\\(X\\)"):
        PosynomialRegressor().fit(X, y, groups=[1, 2])


def test_few_rows_are_fitted_by_one_term() -> None:
    X, y = planted(8)
    model = PosynomialRegressor().fit(X, y)
    assert len(model.expression_.terms) == 1
    assert np.isnan(model.held_out_).all()


def problem_of(n: int = 40) -> tuple[PosynomialProblem, Constants]:
    X, y = planted(n)
    layout = layout_of(X, None, None)
    problem = PosynomialProblem(
        rows=layout.encode(X),
        target=np.log(y),
        weights=np.full(n, 1 / n),
        strengths=Strengths(power=0.3, level=0.2),
    )
    rng = np.random.default_rng(1)
    constants = Constants(
        base=rng.normal(-5, 1, 2),
        powers=rng.normal(0, 2.5, (2, 3)),
        levels=rng.normal(0, 1, (2, 2)),
    )
    return problem, constants


def test_the_gradient_is_that_of_the_cost() -> None:
    problem, c = problem_of()
    problem = replace(problem, expected=Expected(powers=np.ones(3), firmness=np.full(3, 5.0)))
    every = problem.moves(c, np.arange(len(c.flat())))
    cost, gradient, _ = problem.expand(c, (0, 1), 0.1, every)
    assert cost == pytest.approx(problem.cost(c, (0, 1), 0.1))
    none = problem.moves(c, np.full(len(c.flat()), -1))
    assert problem.expand(c, (0, 1), 0.1, none)[1].size == 0
    x, small = c.flat(), 1e-6
    for i in range(len(x)):
        step = np.zeros_like(x)
        step[i] = small
        up, down = (problem.cost(c.like(x + s), (0, 1), 0.1) for s in (step, -step))
        assert gradient[i] == pytest.approx((up - down) / (2 * small), abs=1e-6, rel=1e-4)


def test_rows_of_one_group_count_as_one() -> None:
    once, c = problem_of(30)
    twice = once.take(np.repeat(np.arange(30), 2))
    grouped = replace(twice, independence=0.5)
    assert grouped.n_draws == once.n_draws
    assert grouped.cost(c, (0, 1), 0.1) == pytest.approx(once.cost(c, (0, 1), 0.1))
    assert twice.cost(c, (0, 1), 0.1) < 0.99 * once.cost(c, (0, 1), 0.1)


def test_constants_of_one_slot_move_as_one() -> None:
    problem, c = problem_of()
    slots = np.arange(len(c.flat()))
    slots[7], slots[3] = 4, -1  # one power in two terms; one that stays
    _, whole, bends = problem.expand(c, (0, 1), 0.1, problem.moves(c, np.arange(len(slots))))
    moves = problem.moves(c, renumber(slots))
    _, gradient, hessian = problem.expand(c, (0, 1), 0.1, moves)
    assert moves.n_terms.tolist() == [1, 1, 1, 2, *[1] * (len(gradient) - 4)]
    lean = np.eye(len(slots))[[0, 1, 2, 4, 5, 6, *range(8, len(slots))]]
    lean[3, 7] = 1.0
    assert gradient == pytest.approx(lean @ whole)
    assert hessian == pytest.approx(lean @ bends @ lean.T, rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    scale=st.floats(1e-6, 1e6),
    logs=st.lists(st.floats(-600, 600), min_size=2, max_size=5),
)
def test_a_sum_in_logarithms_never_overflows(scale: float, logs: list[float]) -> None:
    total = log_sum(np.array([logs]) + np.log(scale))
    assert np.isfinite(total).all()
    assert total[0] >= max(logs) + np.log(scale) - 1e-9


def test_few_groups_allow_few_constants() -> None:
    X, y = planted()
    X["system"] = np.random.default_rng(1).choice(list("abcdefgh"), len(X))
    y = y * (1.0 + 0.1 * X["system"].map("abcdefgh".index).to_numpy())
    groups = np.arange(len(X)) % 20
    many = PosynomialRegressor().fit(X, y).front_
    few = PosynomialRegressor().fit(X, y, groups=groups).front_
    assert many.members[many.chosen].n_constants > 15
    assert few.members[few.chosen].n_constants <= 12  # configurations repeat now and then


def test_folds_that_hold_out_groups_are_used() -> None:
    X, y = planted(120)
    groups = np.arange(120) % 6
    model = PosynomialRegressor().fit(X, y, groups=groups)
    assert isinstance(model.candidates_, Candidates)
    assert np.isfinite(model.held_out_).all()


def confounded(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Times of 24 networks, each with a speed and a precision of its own."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(24), 10)
    X = pd.DataFrame(
        {
            "layers": np.exp(rng.uniform(0, 3, 24))[group],
            "device_batch": rng.choice([1.0, 2, 4, 8], 240),
            "precision": rng.choice(list("abcdefg"), 24)[group],
        }
    )
    speed = np.exp(0.35 * rng.normal(size=24))[group]
    return X, (0.01 * X["layers"] * X["device_batch"]).to_numpy() * speed, group


def largest_factor(model: PosynomialRegressor) -> float:
    factors = [f for levels in model.expression_.factors.values() for f in levels.values()]
    return float(np.abs(np.log(factors)).max())


def test_one_term_has_no_factors_beside_those_of_all() -> None:
    X, y, group = confounded()
    term = PosynomialRegressor(n_terms=1).fit(X, y, groups=group).expression_.terms[0]
    assert {f for levels in term.factors.values() for f in levels.values()} <= {1.0}


def test_levels_that_few_groups_cannot_tell_apart_are_shrunk() -> None:
    X, y, group = confounded()
    grouped = PosynomialRegressor(n_terms=1).fit(X, y, groups=group)
    alone = PosynomialRegressor(n_terms=1).fit(X, y)
    assert largest_factor(grouped) < 0.6 * largest_factor(alone)


def test_levels_that_groups_do_tell_apart_are_not() -> None:
    X, y, group = confounded()
    slow = np.random.default_rng(1).random(len(X)) < 0.5
    X = X.assign(kind=np.where(slow, "slow", "fast"))
    model = PosynomialRegressor(n_terms=1).fit(X, y * np.where(slow, 4.0, 1.0), groups=group)
    factors = model.expression_.factors["kind"]
    assert factors["slow"] / factors["fast"] == pytest.approx(4.0, rel=0.2)


def test_terms_that_scale_alike_are_one() -> None:
    X, _ = planted(50)
    layout = layout_of(X, None, None)
    n_powers, n_marks = len(layout.stand_ins), layout.encode(X).marks.shape[1]
    powers = np.zeros((3, n_powers))
    powers[:, 0] = [1.0, -0.0, 0.0]
    alike = Solution(
        constants=Constants(
            base=np.log([0.1, 0.2, 0.3]), powers=powers, levels=np.zeros((3, n_marks))
        ),
        kinds=(0, 0, 0),
        slots=np.arange(3 * (1 + n_powers + n_marks)),
    )
    merged = merge_equal_terms(alike, layout)
    assert np.exp(merged.constants.base) == pytest.approx([0.1, 0.5])
    assert merged.n_slots == 2 * (1 + n_powers + n_marks)
    before, after = (express(s, layout).evaluate(X) for s in (alike, merged))
    assert after == pytest.approx(before)


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "n_chosen", "n_folds"),
    [(150, 40, 150, 20), (400, 40, 400, 10), (5000, 80, 800, 5), (5000, 20, 1600, 5)],
)
def test_few_rows_of_few_columns_are_held_out_in_more_parts(
    n_rows: int, n_columns: int, n_chosen: int, n_folds: int
) -> None:
    rows, folds = choice_folds(np.arange(n_rows), n_columns, 0)
    assert (len(rows), len(folds)) == (n_chosen, n_folds)
