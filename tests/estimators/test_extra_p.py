from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest

from paceline.estimators import ExtraPRegressor
from paceline.estimators._extra_p_search import combinations_of
from paceline.estimators._extra_p_terms import EXPONENTS, fit_terms

SIZES = np.array([2.0, 4, 8, 16, 32, 64])


def line(times: np.ndarray, sizes: np.ndarray = SIZES) -> ExtraPRegressor:
    return ExtraPRegressor().fit(pd.DataFrame({"p": sizes}), times)


def grid(**columns: list[float]) -> pd.DataFrame:
    return pd.DataFrame(list(product(*columns.values())), columns=list(columns), dtype=float)


def test_there_are_the_42_exponents_of_extra_p() -> None:
    assert len(EXPONENTS) == len(set(EXPONENTS)) == 42
    assert (Fraction(0), 0) not in EXPONENTS


@pytest.mark.parametrize("power, log_power", EXPONENTS)
def test_a_planted_growing_term_is_found(power: Fraction, log_power: int) -> None:
    model = line(3 + 0.2 * SIZES ** float(power) * np.log2(SIZES) ** log_power)
    (term,) = model.form_.terms
    (factor,) = term.factors
    assert (factor.power, factor.log_power) == (power, log_power)
    assert model.form_.constant_s == pytest.approx(3)
    assert term.coefficient_s == pytest.approx(0.2)


@pytest.mark.parametrize("power, log_power", EXPONENTS)
def test_a_planted_shrinking_term_is_found(power: Fraction, log_power: int) -> None:
    model = line(3 + 20 * SIZES ** -float(power) * np.log2(SIZES) ** -log_power)
    (term,) = model.form_.terms
    assert (term.factors[0].power, term.factors[0].log_power) == (-power, -log_power)


def test_negative_exponents_can_be_forbidden() -> None:
    X = pd.DataFrame({"p": SIZES})
    form = ExtraPRegressor(negative=False).fit(X, 3 + 20 / SIZES).form_
    assert all(f.power >= 0 and f.log_power >= 0 for t in form.terms for f in t.factors)


def test_noise_alone_gives_a_constant() -> None:
    times = np.array([1.0, 1.02, 0.99, 1.01, 0.98, 1.0])
    assert line(times).form_.terms == ()
    assert line(np.ones(6)).form_.constant_s == 1.0


def test_a_term_that_hardly_contributes_is_rejected() -> None:
    assert line(100 + 1e-4 * SIZES / 64).form_.terms == ()
    assert line(100 + 1e-1 * SIZES / 64).form_.terms != ()


def test_fewer_than_five_points_give_a_constant() -> None:
    assert line(SIZES[:4], SIZES[:4]).form_.terms == ()
    assert line(SIZES[:5], SIZES[:5]).form_.terms != ()


def test_leaving_one_out_is_fitting_without_it() -> None:
    times = np.array([1.3, 2.1, 4.4, 7.7, 17.0, 32.5])
    trial = fit_terms([SIZES], times)
    assert trial is not None
    for i, left_out in enumerate(trial.left_out):
        others = np.arange(6) != i
        slope, constant = np.polyfit(SIZES[others], times[others], 1)
        assert left_out == pytest.approx(constant + slope * SIZES[i])


TRUTHS = {
    "product": lambda x, y: 1 + 2 * x * np.log2(y),
    "sum": lambda x, y: 1 + 2 * x + 5 * np.log2(y),
    "both": lambda x, y: 1 + 2 * x * np.log2(y) + 50 * x,
}


@pytest.mark.parametrize("truth", TRUTHS.values(), ids=TRUTHS)
def test_two_parameters_are_combined_as_planted(truth) -> None:
    X = grid(x=[10, 20, 30, 40, 50], y=[2, 4, 8, 16, 32])
    times = truth(X["x"], X["y"])
    model = ExtraPRegressor().fit(X, times)
    far = X * 10
    np.testing.assert_allclose(model.predict(far), truth(far["x"], far["y"]), rtol=1e-6)


def test_points_without_lines_are_fitted_as_a_whole() -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"x": rng.uniform(1, 50, 200), "y": rng.uniform(1, 50, 200)})
    times = 0.1 * X["x"] * np.sqrt(X["y"]) * np.exp(0.02 * rng.standard_normal(200))
    predicted = ExtraPRegressor().fit(X, times).predict(X)
    assert np.mean(np.abs(predicted / times - 1)) < 0.05


def test_levels_have_forms_of_their_own_when_they_have_the_points() -> None:
    X = pd.DataFrame({"p": [*SIZES, *SIZES], "net": ["a"] * 6 + ["b"] * 6})
    times = np.concatenate([1 + SIZES, 1 + 0.01 * SIZES**2])
    model = ExtraPRegressor().fit(X, times)
    assert set(model.forms_) == {("a",), ("b",)}
    np.testing.assert_allclose(model.predict(X), times, rtol=1e-9)


def test_levels_with_few_points_share_a_form_and_have_a_factor() -> None:
    X = pd.DataFrame({"p": [*SIZES, 2, 8, 32], "net": ["a"] * 6 + ["b"] * 3})
    factor = np.where(X["net"] == "a", 1.0, 3.0)
    model = ExtraPRegressor().fit(X, factor * X["p"])
    assert ("b",) not in model.forms_
    np.testing.assert_allclose(model.predict(X), factor * X["p"], rtol=1e-6)
    assert model.factors_["net"]["b"] / model.factors_["net"]["a"] == pytest.approx(3)


def test_repeats_are_one_point() -> None:
    X = pd.DataFrame({"p": SIZES})
    times = 1 + 0.3 * SIZES + np.array([0.1, -0.1, 0.2, 0.0, -0.2, 0.1])
    repeated = pd.concat([X, X.iloc[:2], X.iloc[:2]])
    spread = np.concatenate([times, times[:2] * 1.1, times[:2] * 0.9])
    models = ExtraPRegressor().fit(X, times), ExtraPRegressor().fit(repeated, spread)
    np.testing.assert_allclose(*(model.predict(X) for model in models))


def test_predictions_never_fall_to_zero() -> None:
    model = ExtraPRegressor(negative=False).fit(pd.DataFrame({"p": SIZES}), 100 - SIZES)
    assert model.predict(pd.DataFrame({"p": [1e6]})) == pytest.approx(1e-3 * 36)


def test_values_below_the_measured_ones_are_predicted() -> None:
    model = line(3 + 20 / (SIZES * np.log2(SIZES)))
    predicted = model.predict(pd.DataFrame({"p": [0.0, 1.0, 2.0]}))
    np.testing.assert_allclose(predicted, 13.0)


def test_combinations_use_every_factor() -> None:
    for n in range(1, 9):
        for products in combinations_of(n):
            assert {i for part in products for i in part} == set(range(n))


def test_a_form_reads_as_a_formula() -> None:
    form = line(3 + 20 * SIZES ** (-2 / 3)).form_
    assert str(form) == "3 + 20 * p^(-2/3)"


def test_weights_must_not_all_be_zero() -> None:
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        ExtraPRegressor().fit(pd.DataFrame({"p": SIZES}), SIZES, sample_weight=np.zeros(6))
