"""Factors that several terms have alike, and what an unseen level has."""

import numpy as np
import pandas as pd
import pytest

from paceline.estimators import PosynomialExpression, PosynomialRegressor, score
from paceline.estimators._posynomial import PosynomialTerm

SPEEDS = {"a": 1.0, "b": 1.4, "c": 0.6, "d": 2.1, "e": 0.8, "f": 3.0}


def on_devices(
    n: int = 240, seed: int = 0, noise: float = 0.01
) -> tuple[pd.DataFrame, np.ndarray]:
    """Work and overhead, both of which every device does at its own speed."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"size": 2.0 ** rng.integers(0, 10, n), "device": rng.choice(list(SPEEDS), n)}
    )
    times = X["device"].map(SPEEDS) * (0.01 * X["size"] + 0.4)
    return X, times.to_numpy() * np.exp(noise * rng.normal(size=n))


def test_a_factor_that_two_terms_have_alike_is_one_constant() -> None:
    model = PosynomialRegressor().fit(*on_devices())
    assert len(model.expression_.terms) == 2
    assert model.expression_.n_constants <= 10  # two coefficients, a power, five devices and two
    unseen, truth = on_devices(seed=1, noise=0.0)
    assert score(truth, model.predict(unseen)).mape < 0.01


def test_devices_are_as_much_slower_than_each_other_as_planted() -> None:
    model = PosynomialRegressor().fit(*on_devices())
    rows = pd.DataFrame({"size": 64.0, "device": list(SPEEDS)})
    times = model.predict(rows)
    assert times / times[0] == pytest.approx(list(SPEEDS.values()), rel=0.03)


def expression(factors: tuple[dict[str, float], dict[str, float]]) -> PosynomialExpression:
    terms = tuple(
        PosynomialTerm(coefficient_s=1.0, powers={"size": power}, factors={"device": group})
        for power, group in zip((1.0, 0.5), factors, strict=True)
    )
    return PosynomialExpression(
        terms=terms, factors={"device": dict.fromkeys("abc", 1.0)}, stand_ins={"size": 8.0}
    )


def test_what_a_reader_sees_more_than_once_is_counted_once() -> None:
    first = {"a": 1.0, "b": 2.0, "c": 3.0}
    assert expression((first, first)).n_constants == 4 + 2
    assert expression((first, {"a": 2.0, "b": 1.0, "c": 5.0})).n_constants == 4 + 3


def test_an_unseen_level_has_the_geometric_mean_in_every_language() -> None:
    known = expression(({"a": 1.0, "b": 2.0, "c": 4.0}, {"a": 1.0, "b": 1.0, "c": 8.0}))
    wanted = 2.0 * 16.0 + 2.0 * 4.0
    row = pd.DataFrame({"size": [16.0], "device": ["new"]})
    assert known.evaluate(row)[0] == pytest.approx(wanted)
    namespace: dict[str, object] = {}
    exec(known.to_python(), namespace)
    assert namespace["time_s"](16.0, "new") == pytest.approx(wanted)  # type: ignore[operator]
    sympy = pytest.importorskip("sympy")
    given = known.to_sympy({"device": "new"})
    assert float(given.subs({s: 16 for s in given.free_symbols})) == pytest.approx(wanted)
    marks = {s: 0 for s in known.to_sympy().free_symbols if "=" in s.name}
    (size,) = {s for s in known.to_sympy().free_symbols if "=" not in s.name}
    assert float(known.to_sympy().subs({**marks, size: 16})) == pytest.approx(wanted)
    assert sympy.__version__


def test_powers_that_few_rows_leave_open_are_the_expected_ones() -> None:
    """The batch was halved wherever the sequence was doubled: nothing tells their powers apart."""
    rng = np.random.default_rng(0)
    length = 2.0 ** rng.integers(9, 14, 40)
    X = pd.DataFrame({"seq_len": length, "micro_batch": 2.0**14 / length})
    X["n_layers"] = rng.choice([12.0, 24, 48], 40)
    y = 1e-6 * X["seq_len"] * X["micro_batch"] * X["n_layers"] * np.exp(0.02 * rng.normal(size=40))
    powers = PosynomialRegressor(n_terms=1).fit(X, y).expression_.terms[0].powers
    assert powers["seq_len"] == pytest.approx(1.0, abs=0.05)
    assert powers["micro_batch"] == pytest.approx(1.0, abs=0.05)
    assert powers["n_layers"] == pytest.approx(1.0, abs=0.05)
