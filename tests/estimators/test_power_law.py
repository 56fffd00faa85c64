import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InvalidInputError
from paceline.estimators._power_law import PowerLawRegressor

FACTORS = {"adam": 2.0, "sgd": 0.5, "rmsprop": 1.0}  # geometric mean 1


def planted(n=60, seed=0, constant=0.003):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "layers": rng.integers(1, 9, n).astype(float),
            "n_devices": rng.choice([1.0, 2.0, 4.0], n),
            "optimizer": rng.choice(list(FACTORS), n),
        }
    )
    factor = X["optimizer"].map(FACTORS).to_numpy()
    return X, constant * X["layers"] ** 1.5 / X["n_devices"] ** 0.9 * factor


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_power_law_without_noise_is_recovered(seed):
    X, y = planted(seed=seed)
    model = PowerLawRegressor().fit(X, y)
    assert model.constant_s_ == pytest.approx(0.003, rel=1e-7)
    assert model.powers_ == pytest.approx({"layers": 1.5, "n_devices": -0.9}, rel=1e-7)
    assert model.factors_["optimizer"] == pytest.approx(FACTORS, rel=1e-7)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-7)


@given(p=st.floats(-4, 4), q=st.floats(-4, 4), log_constant=st.floats(-20, 20))
def test_any_powers_are_recovered(p, q, log_constant):
    X, _ = planted()
    X = X.drop(columns="optimizer")
    y = np.exp(log_constant) * X["layers"] ** p * X["n_devices"] ** q
    model = PowerLawRegressor().fit(X, y)
    assert model.powers_ == pytest.approx({"layers": p, "n_devices": q}, abs=1e-6)
    assert np.log(model.constant_s_) == pytest.approx(log_constant, abs=1e-6)


def test_the_learned_constants_make_the_prediction():
    X, y = planted()
    X["dropout"] = np.where(np.arange(len(X)) % 3 == 0, 0.0, 0.5)
    model = PowerLawRegressor().fit(X, y * np.where(X["dropout"] == 0, 0.7, 1.0))
    by_hand = np.full(len(X), model.constant_s_)
    for name, power in model.powers_.items():
        x = X[name].to_numpy()
        by_hand *= np.where(x > 0, np.where(x > 0, x, 1.0) ** power, model.zero_factors_[name])
    by_hand *= X["optimizer"].map(model.factors_["optimizer"]).to_numpy()
    np.testing.assert_allclose(model.predict(X), by_hand, rtol=1e-9)
    np.testing.assert_allclose(
        model.predict(X), y * np.where(X["dropout"] == 0, 0.7, 1.0), rtol=1e-6
    )


def test_an_unseen_level_has_the_average_factor():
    X, y = planted()
    model = PowerLawRegressor().fit(X, y)
    row = pd.DataFrame({"layers": [4.0], "n_devices": [2.0], "optimizer": ["lion"]})
    assert model.predict(row)[0] == pytest.approx(0.003 * 8 / 2**0.9, rel=1e-6)


def test_a_zero_never_measured_counts_as_an_average_value():
    X, y = planted()
    model = PowerLawRegressor().fit(X, y)
    average = float(np.exp(np.log(X["layers"]).mean()))
    rows = pd.DataFrame({"layers": [0.0, average], "n_devices": 2.0, "optimizer": "sgd"})
    zero, typical = model.predict(rows)
    assert zero == pytest.approx(typical)


def test_a_column_of_zeros_changes_nothing():
    X, y = planted()
    model = PowerLawRegressor().fit(X.assign(nothing=0.0), y)
    assert model.powers_["nothing"] == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(model.predict(X.assign(nothing=0.0)), y, rtol=1e-7)


def test_collinear_parameters_share_their_effect():
    X, y = planted()
    model = PowerLawRegressor().fit(X.assign(twin=X["layers"]), y)
    assert model.powers_["layers"] == pytest.approx(0.75, rel=1e-4)
    assert model.powers_["twin"] == pytest.approx(0.75, rel=1e-4)


def test_weights_are_repeats():
    X, y = planted(n=30)
    y = y * np.random.default_rng(1).lognormal(0, 0.3, len(y))
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    weighted = PowerLawRegressor().fit(X, y, sample_weight=weights)
    repeated = PowerLawRegressor().fit(X.iloc[rows], y.iloc[rows])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)


def test_a_level_without_weight_is_an_unseen_level():
    X, y = planted()
    weights = (X["optimizer"] != "adam").astype(float)
    model = PowerLawRegressor().fit(X, y, sample_weight=weights)
    assert sorted(model.factors_["optimizer"]) == ["rmsprop", "sgd"]


def test_fewer_rows_than_constants_still_give_a_fit():
    X, y = planted(n=3)
    np.testing.assert_allclose(PowerLawRegressor().fit(X, y).predict(X), y, rtol=1e-6)


def test_numbers_may_be_labels():
    X = pd.DataFrame({"kernel": [1.0, 3.0, 5.0] * 2, "layers": [1.0] * 3 + [2.0] * 3})
    y = np.array([1.0, 9.0, 2.0, 2.0, 18.0, 4.0])
    model = PowerLawRegressor(categorical=["kernel"]).fit(X, y)
    assert list(model.factors_) == ["kernel"]
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-6)


def test_predictions_stay_finite_far_outside():
    X, y = planted()
    far = X.assign(layers=1e300)
    assert np.isfinite(PowerLawRegressor().fit(X, y).predict(far)).all()


def test_negative_numbers_and_no_weight_at_all_are_refused():
    X, y = planted()
    with pytest.raises(InvalidInputError, match="layers"):
        PowerLawRegressor().fit(X.assign(layers=-1.0), y)
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        PowerLawRegressor().fit(X, y, sample_weight=np.zeros(len(y)))


@pytest.mark.parametrize("column", ["layers", "optimizer"])
def test_a_missing_value_is_refused_with_its_row(column):
    X, y = planted()
    model = PowerLawRegressor().fit(X, y)
    rows = pd.DataFrame({"layers": [4.0, 4.0], "n_devices": 2.0, "optimizer": "adam"})
    rows.loc[1, column] = None
    with pytest.raises(ValueError, match=f"row 2 of `{column}`"):
        model.predict(rows)
