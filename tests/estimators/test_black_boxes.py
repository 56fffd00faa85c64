import numpy as np
import pandas as pd
import pytest

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.estimators import _black_boxes, _recipes
from paceline.estimators._black_boxes import BlackBoxRegressor
from paceline.estimators._metrics import score

MEMBERS = ("forest", "svr", "boosting")


def planted(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "layers": rng.choice([1.0, 2.0, 4.0, 8.0], n),
            "dropout": rng.choice([0.0, 0.2, 0.5], n),
            "n_devices": rng.choice([1.0, 2.0, 4.0], n),
            "optimizer": rng.choice(["adam", "sgd"], n),
        }
    )
    slow = np.where(X["optimizer"] == "adam", 2.0, 1.0)
    return X, 0.01 * slow * X["layers"] ** 1.5 / X["n_devices"] + 0.002


def make(member, **settings):
    return BlackBoxRegressor(member, n_trees=60, **settings)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_black_box_learns_a_smooth_truth(member):
    X, y = planted()
    X_new, y_new = planted(seed=1)
    assert score(y_new, make(member).fit(X, y).predict(X_new)).mape < 0.06


@pytest.mark.parametrize("member", MEMBERS)
def test_the_same_seed_gives_the_same_black_box(member):
    X, y = planted(n=60)
    first, again = (make(member, random_state=3).fit(X, y) for _ in range(2))
    assert first.settings_ == again.settings_
    np.testing.assert_array_equal(first.predict(X), again.predict(X))


@pytest.mark.parametrize("member", MEMBERS)
def test_an_unseen_level_and_an_unseen_zero_are_no_obstacle(member):
    X, y = planted(n=60)
    model = make(member).fit(X, y)
    odd = X.assign(optimizer="lion", layers=0.0)
    assert (model.predict(odd) > 0).all() and np.isfinite(model.predict(odd)).all()


@pytest.mark.parametrize("member", MEMBERS)
def test_units_of_time_do_not_matter(member):
    X, y = planted(n=60)
    seconds, hours = make(member).fit(X, y), make(member).fit(X, y / 4096)
    assert seconds.settings_ == hours.settings_
    np.testing.assert_allclose(seconds.predict(X), 4096 * hours.predict(X), rtol=1e-6)


@pytest.mark.parametrize("member", MEMBERS)
def test_few_rows_are_fitted_without_choosing(member):
    X, y = planted(n=8)
    model = make(member).fit(X, y)
    assert model.settings_["target"] == "log time"
    assert "fewer than 9 rows" in model.settings_["note"]


@pytest.mark.parametrize("member", MEMBERS)
def test_one_configuration_alone_is_fitted_without_choosing(member):
    X = pd.DataFrame({"layers": [2.0] * 12})
    predicted = make(member).fit(X, np.linspace(1, 2, 12)).predict(X)
    assert np.unique(predicted).size == 1 and 1 < predicted[0] < 2


@pytest.mark.parametrize(
    ("truth", "target"),
    [(lambda x: 0.5 + abs(x - 50), "time"), (lambda x: np.exp(x / 12), "log time")],
)
def test_the_better_target_is_chosen(truth, target):
    x = np.random.default_rng(0).uniform(0, 100, 300)
    X = pd.DataFrame({"x": x})
    model = BlackBoxRegressor("svr").fit(X, truth(x))
    assert model.settings_["target"] == target


@pytest.mark.parametrize(
    ("member", "limit", "words"),
    [
        ("forest", "MAX_BAG_ROWS", "rows drawn for each tree"),
        ("svr", "MAX_KERNEL_ROWS", "drawn at random"),
        ("boosting", "MAX_EXACT_ROWS", "counted in bins"),
    ],
)
def test_large_data_are_fitted_in_a_cheaper_way_that_is_said(monkeypatch, member, limit, words):
    for module in (_black_boxes, _recipes):
        monkeypatch.setattr(module, limit, 100)
    X, y = planted(n=300)
    model = make(member).fit(X, y)
    assert words in model.settings_["note"]
    assert score(y, model.predict(X)).mape < 0.2


def test_predictions_are_positive_where_a_straight_line_would_not_be():
    X, y = planted(n=60)
    model = make("svr").fit(X, y)
    low = model.fitted_.floor_s
    assert 0 < low < y.min()
    assert (model.predict(X.assign(n_devices=1e6)) >= low).all()


def test_unknown_members_and_no_trees_are_refused():
    X, y = planted(n=20)
    with pytest.raises(UnknownNameError, match="forest"):
        BlackBoxRegressor("forrest").fit(X, y)
    with pytest.raises(InvalidInputError, match="n_trees >= 1"):
        BlackBoxRegressor(n_trees=0).fit(X, y)
