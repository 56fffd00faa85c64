import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from paceline.errors import (
    BoundWarning,
    ConvergenceWarning,
    InvalidInputError,
    UnknownNameError,
)
from paceline.estimators import GenericRegressor, score
from paceline.validation import generate_study


def settings_of(study: object, **options: object) -> GenericRegressor:
    dataset = study.dataset
    return GenericRegressor(dataset.extrinsic, dataset.categorical, **options)


def small_table(n: int = 60, noise: float = 0.02) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(7)
    X = pd.DataFrame(
        {
            "width": rng.choice([8.0, 16.0, 32.0, 64.0], n),
            "kind": rng.choice(["plain", "wide"], n),
            "n_devices": rng.choice([1.0, 2.0, 4.0], n),
        }
    )
    level = np.where(X["kind"] == "wide", 3.0, 0.0)
    y = (0.4 * X["width"] ** 1.2 + level) / X["n_devices"] ** 0.9 + 1.5
    return X, (y * np.exp(noise * rng.standard_normal(n))).to_numpy()


@pytest.mark.parametrize("framework", ["tensorflow", "mxnet"])
def test_planted_constants_come_back_without_noise(framework: str) -> None:
    study = generate_study(framework, n_rows=1000, noise=0.0, random_state=1)
    unseen = generate_study(framework, n_rows=1000, noise=0.0, random_state=2)
    model = settings_of(study).fit(study.dataset.X, study.dataset.y)
    found, planted = model.expression_.constants(), study.truth.canonical().constants()
    for name, value in planted.items():
        if name.startswith("q["):
            assert found[name] == pytest.approx(value, abs=0.01), name
        if name.startswith("p["):
            assert found[name] == pytest.approx(value, abs=0.05), name
    assert score(unseen.dataset.y, model.predict(unseen.dataset.X)).mape < 0.001


@pytest.mark.parametrize("seed", [0, 5])
def test_with_noise_the_error_is_near_the_floor(seed: int) -> None:
    study = generate_study(n_rows=1000, noise=0.05, random_state=seed)
    unseen = generate_study(n_rows=2000, noise=0.05, random_state=seed + 1)
    model = settings_of(study).fit(study.dataset.X, study.dataset.y)
    floor = score(unseen.dataset.y, unseen.true_s).mape
    assert score(unseen.dataset.y, model.predict(unseen.dataset.X)).mape <= 1.1 * floor


@pytest.mark.parametrize("penalty", ["none", "l2"])
@pytest.mark.filterwarnings("ignore::paceline.errors.BoundWarning")
def test_the_fast_solver_is_never_worse_than_differential_evolution(penalty: str) -> None:
    X, y = small_table()
    options = {"penalty": penalty, "units": "thesis", "extrinsic": ["n_devices"]}
    fast = GenericRegressor(**options).fit(X, y)
    evolved = GenericRegressor(**options, solver="de").fit(X, y)
    assert fast.cost_ <= evolved.cost_ * (1 + 1e-6)


def test_the_quick_solver_predicts_what_the_fast_one_predicts() -> None:
    study = generate_study(n_rows=1000, noise=0.05)
    fast = settings_of(study).fit(study.dataset.X, study.dataset.y)
    quick = settings_of(study).set_params(solver="quick").fit(study.dataset.X, study.dataset.y)
    between = score(fast.predict(study.dataset.X), quick.predict(study.dataset.X))
    assert between.mape < 0.002
    assert quick.cost_ >= fast.cost_


def test_ten_seeds_agree_on_the_cost() -> None:
    X, y = small_table()
    costs = [
        GenericRegressor(["n_devices"], random_state=seed).fit(X, y).cost_ for seed in range(10)
    ]
    assert max(costs) <= min(costs) * (1 + 1e-6)


def test_a_stronger_penalty_never_raises_the_penalised_constants() -> None:
    X, y = small_table()
    sizes = []
    for strength in (0.0001, 0.01, 1.0):
        model = GenericRegressor(["n_devices"], penalty="l2", strength=strength).fit(X, y)
        sizes.append(float(np.sum(model.x_[:-1] ** 2)))
    assert sizes == sorted(sizes, reverse=True)


def test_l1_sets_useless_powers_to_zero_exactly() -> None:
    X, y = small_table()
    X["noise_level"] = np.random.default_rng(0).choice([1.0, 2.0, 3.0], len(X))
    model = GenericRegressor(["n_devices"], penalty="l1", strength=0.003).fit(X, y)
    useless = next(t for t in model.expression_.terms if t.name == "noise_level")
    assert useless.coefficient_s == 0 or useless.power == 0


def test_coefficients_and_powers_can_be_penalised_apart() -> None:
    X, y = small_table()
    gentle = GenericRegressor(["n_devices"], penalty="l2", strength=1e-4, power_strength=0.0)
    harsh = GenericRegressor(["n_devices"], penalty="l2", strength=1e-4, power_strength=1.0)
    powers = [abs(m.fit(X, y).expression_.powers["n_devices"]) for m in (gentle, harsh)]
    assert powers[1] < 0.5 * powers[0]


@settings(max_examples=10, deadline=None)
@given(st.floats(-9, 9).map(lambda exponent: 10.0**exponent))
def test_times_in_other_units_give_the_same_fit_in_those_units(unit: float) -> None:
    X, y = small_table()
    seconds = GenericRegressor(["n_devices"]).fit(X, y)
    scaled = GenericRegressor(["n_devices"]).fit(X, y * unit)
    np.testing.assert_allclose(scaled.predict(X), unit * seconds.predict(X), rtol=1e-6)
    assert scaled.expression_.powers["n_devices"] == pytest.approx(
        seconds.expression_.powers["n_devices"], abs=1e-5
    )


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_the_order_of_the_rows_does_not_matter(seed: int) -> None:
    X, y = small_table()
    order = np.random.default_rng(seed).permutation(len(X))
    plain = GenericRegressor(["n_devices"]).fit(X, y)
    shuffled = GenericRegressor(["n_devices"]).fit(X.iloc[order], y[order])
    assert plain.expression_ == shuffled.expression_


@settings(max_examples=10, deadline=None)
@given(st.permutations(["a", "zz", "m"]))
def test_the_names_of_levels_do_not_matter(names: list[str]) -> None:
    X, y = small_table()
    renamed = X.assign(kind=X["kind"].map({"plain": names[0], "wide": names[1]}))
    plain = GenericRegressor(["n_devices"]).fit(X, y)
    other = GenericRegressor(["n_devices"]).fit(renamed, y)
    np.testing.assert_allclose(other.predict(renamed), plain.predict(X), rtol=1e-6)


def test_weights_count_rows() -> None:
    X, y = small_table()
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = GenericRegressor(["n_devices"]).fit(X, y, sample_weight=weights)
    repeated = GenericRegressor(["n_devices"]).fit(
        X.iloc[np.arange(len(X)).repeat(weights)], y.repeat(weights)
    )
    assert weighted.expression_ == repeated.expression_


def test_a_relative_cost_serves_short_times_better() -> None:
    X, y = small_table(noise=0.3)
    absolute = GenericRegressor(["n_devices"]).fit(X, y)
    relative = GenericRegressor(["n_devices"], cost="relative").fit(X, y)
    assert score(y, relative.predict(X)).mape < score(y, absolute.predict(X)).mape


def test_thesis_units_keep_the_redundant_constants_and_the_printed_bounds() -> None:
    X, y = small_table()
    model = GenericRegressor(["n_devices"], units="thesis").fit(X, y)
    assert model.expression_.base_s == 0
    assert model.problem_.upper.max() == 1000 and model.problem_.lower.min() == -5
    np.testing.assert_allclose(model.problem_.times.sum(), y.sum())


def test_a_constant_at_its_bound_is_said() -> None:
    X, y = small_table()
    model = GenericRegressor(["n_devices"], bounds={"powers": (-0.5, 0.5)})
    with pytest.warns(BoundWarning, match=r"p\[width\]"):
        model.fit(X, y)
    assert "p[width]" in model.at_bounds_


def test_too_few_rows_are_said() -> None:
    X, y = small_table(n=5)
    with pytest.warns(ConvergenceWarning, match="cannot be determined by 5 different rows"):
        GenericRegressor(["n_devices"]).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "l3"}, "No penalty is called 'l3'"),
        ({"solver": "fats"}, "Did you mean 'fast'"),
        ({"bounds": "thesys"}, "Did you mean 'thesis'"),
        ({"bounds": {"powers": (1, -1)}}, "`low < high` must hold"),
        ({"bounds": {"coefficients": (-1, 1)}}, "`low >= 0` must hold"),
        ({"strength": -1.0}, "0 <= strength <= 1e12` must hold, but got -1.0"),
        ({"extrinsic": ["n_device"]}, "Did you mean 'n_devices'"),
        ({"extrinsic": ["kind"]}, "must be numeric, but `kind` is categorical"),
    ],
)
def test_wrong_settings_are_refused_in_one_clear_line(options: dict, message: str) -> None:
    X, y = small_table()
    with pytest.raises(InvalidInputError, match=message):
        GenericRegressor(**{"extrinsic": ["n_devices"], **options}).fit(X, y)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_times_must_be_finite_and_positive(bad: float) -> None:
    X, times = small_table()
    y = np.where(np.arange(len(times)) == 3, bad, times)
    with pytest.raises(ValueError, match=r"row 4|NaN|infinity"):
        GenericRegressor(["n_devices"]).fit(X, y)


def test_a_missing_column_in_predict_is_named() -> None:
    X, y = small_table()
    model = GenericRegressor(["n_devices"]).fit(X, y)
    with pytest.raises(UnknownNameError, match="width"):
        model.predict(X.rename(columns={"width": "widht"}))


def test_columns_may_come_in_another_order() -> None:
    X, y = small_table()
    model = GenericRegressor(["n_devices"]).fit(X, y)
    np.testing.assert_array_equal(model.predict(X[list(X)[::-1]]), model.predict(X))


def test_it_works_in_scikit_learns_searches_and_pipelines() -> None:
    X, y = small_table()
    model = GenericRegressor(["n_devices"], penalty="l2")
    search = GridSearchCV(clone(model), {"strength": [1e-4, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"strength": 1e-4}
    pipeline = make_pipeline(FunctionTransformer(lambda frame: frame), model)
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9


def test_with_extrinsic_parameters_only_the_brackets_hold_one_constant() -> None:
    X = pd.DataFrame({"n_devices": [1.0, 2, 4, 8] * 3, "global_batch": [32.0, 64, 128] * 4})
    y = 0.5 * X["global_batch"] ** 0.9 * X["n_devices"] ** -0.8 + 2.0
    model = GenericRegressor(["n_devices", "global_batch"]).fit(X, y)
    found = model.expression_
    assert found.base_s == pytest.approx(0.5, rel=1e-3)
    assert found.powers["n_devices"] == pytest.approx(-0.8, abs=1e-3)
    assert found.constant_s == pytest.approx(2.0, rel=1e-3)
