import numpy as np
import pandas as pd
import pytest

from paceline.dataset import Dataset
from paceline.estimators import GenericRegressor, PowerLawRegressor, fit, score
from paceline.validation import generate_study


def dataset_of(X: pd.DataFrame, y: object) -> Dataset:
    return Dataset.from_frame(X.assign(time_s=y))


def sums(n: int, seed: int = 0, noise: float = 0.05) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "width": np.exp(rng.uniform(0, 5, n)),
            "batch": np.exp(rng.uniform(0, 5, n)),
            "depth": np.exp(rng.uniform(0, 3, n)),
            "kind": rng.choice(list("abc"), n),
        }
    )
    factor = X["kind"].map({"a": 0.7, "b": 1.0, "c": 1.6})
    t = (0.002 * X["width"] ** 1.17 * X["batch"] ** 0.83 + 0.3 * X["depth"] ** 0.41) * factor
    return X, t.to_numpy() * np.exp(noise * rng.normal(size=n))


def test_data_of_the_thesis_form_are_recognised_as_such() -> None:
    study = generate_study(n_rows=400, noise=0.05)
    result = fit(study.dataset, n_seeds=1)
    assert result.form == "generic"
    assert any("`generic` was chosen" in note for note in result.notes)


def test_a_sum_of_products_is_recognised_as_such() -> None:
    result = fit(dataset_of(*sums(150)))
    assert result.form == "posynomial"
    assert len(result.estimator.expression_.terms) == 2
    unseen, truth = sums(1000, seed=5, noise=0.0)
    assert score(truth, result.estimator.predict(unseen)).mape < 0.04


def test_thirty_rows_stay_simple() -> None:
    result = fit(dataset_of(*sums(30)))
    assert result.form == "posynomial"
    assert result.estimator.expression_.n_constants <= 15


def test_nothing_worse_than_a_power_law_is_chosen() -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.choice([1.0, 2, 4, 8], 60), "b": rng.choice([1.0, 3, 9], 60)})
    y = 0.1 * X["a"] ** 0.77 * X["b"] ** -0.31 * np.exp(0.2 * rng.normal(size=60))
    result = fit(dataset_of(X, y))
    half = np.arange(60) % 2 == 0
    law = PowerLawRegressor().fit(X[half], y[half])
    law_error = score(y[~half], law.predict(X[~half])).mape
    assert result.scores.mape <= 1.1 * law_error


def test_settings_of_the_generic_form_choose_it() -> None:
    result = fit(dataset_of(*sums(100)), estimator=GenericRegressor(penalty="l2"), n_seeds=1)
    assert result.form == "generic"


def test_intervals_cover_what_was_not_seen() -> None:
    result = fit(dataset_of(*sums(300)))
    unseen, y = sums(2000, seed=9)
    predicted = result.predict(unseen)
    covered = (predicted["lower_s"] <= y) & (y <= predicted["upper_s"])
    assert 0.85 <= covered.mean() <= 0.96


def test_intervals_are_wider_where_predictions_are_harder() -> None:
    X, _ = sums(400)
    rng = np.random.default_rng(1)
    noise = np.where(X["batch"] > 12.0, 0.3, 0.02)
    y = 0.01 * X["width"] * np.exp(noise * rng.normal(size=len(X)))
    result = fit(dataset_of(X, y))
    predicted = result.predict(X)
    width = np.log(predicted["upper_s"] / predicted["lower_s"])
    hard = X["batch"].to_numpy() > 12.0
    assert width[hard].median() > 1.5 * width[~hard].median()


def test_groups_are_held_out_whole() -> None:
    X, y = sums(200)
    frame = X.assign(time_s=y, model=[f"m{i % 10}" for i in range(200)])
    dataset = Dataset.from_frame(frame, group="model")
    result = fit(dataset, group="model")
    assert result.covers == "values of model not measured"


@pytest.mark.parametrize("form", ["posynomial", "corrected"])
def test_a_number_of_terms_is_kept(form: str) -> None:
    result = fit(dataset_of(*sums(100)), form=form, n_terms=1)
    assert len(result.estimator.expression_.terms) == 1
