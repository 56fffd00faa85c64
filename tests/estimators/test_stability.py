import numpy as np
import pytest

from paceline.errors import InvalidInputError
from paceline.estimators import GenericRegressor, Stability, regularization_path, study_stability
from paceline.validation import generate_study


@pytest.fixture(scope="module")
def model() -> GenericRegressor:
    dataset = generate_study("tensorflow", n_rows=600, noise=0.05, random_state=3).dataset
    return GenericRegressor(dataset.extrinsic, dataset.categorical).fit(dataset.X, dataset.y)


@pytest.fixture(scope="module")
def stability(model: GenericRegressor) -> Stability:
    return study_stability(model, n_seeds=10, n_bootstrap=25)


def test_identified_constants_do_not_depend_on_the_seed(stability: Stability) -> None:
    assert {"q[n_devices]", "q[device_batch]", "C"} <= set(stability.identified)
    for name in stability.identified:
        spread = stability.spreads[name]
        assert spread.seed_sd <= 0.01 * abs(spread.seed_mean), name


def test_intervals_of_identified_constants_hold_the_planted_value(stability: Stability) -> None:
    truth = generate_study("tensorflow", n_rows=10).truth.canonical().constants()
    held = [
        stability.spreads[n].low <= truth[n] <= stability.spreads[n].high
        for n in ("q[n_devices]", "q[device_batch]", "C", "p[filters]")
    ]
    assert sum(held) >= 3  # four intervals of 90 %


def test_a_constant_without_influence_is_not_identified(stability: Stability) -> None:
    assert "level[activation=relu]" in stability.not_identified


def test_converging_over_seeds_is_not_sold_as_certainty(stability: Stability) -> None:
    for name in stability.not_identified:
        spread = stability.spreads[name]
        assert spread.high - spread.low >= 0.5 * abs(spread.value)


def test_stability_survives_being_written_and_read(stability: Stability) -> None:
    assert Stability.from_dict(stability.to_dict()) == stability


def test_more_rows_narrow_the_interval() -> None:
    widths = []
    for n_rows in (200, 3200):
        dataset = generate_study("mxnet", n_rows=n_rows, noise=0.05, random_state=0).dataset
        model = GenericRegressor(dataset.extrinsic, dataset.categorical).fit(dataset.X, dataset.y)
        spread = study_stability(model, n_seeds=0, n_bootstrap=15).spreads["q[n_devices]"]
        widths.append(spread.high - spread.low)
    assert widths[1] < 0.5 * widths[0]


def test_the_path_shows_the_error_and_every_constant() -> None:
    dataset = generate_study("tensorflow", n_rows=200, noise=0.05, random_state=0).dataset
    model = GenericRegressor(dataset.extrinsic, dataset.categorical, penalty="l2")
    path = regularization_path(model, dataset.X, dataset.y, [1e-4, 1e-2, 1.0], n_folds=3)
    assert list(path.table["strength"]) == [1e-4, 1e-2, 1.0]
    assert path.table["r2"].iloc[0] > path.table["r2"].iloc[-1]
    assert path.best <= path.one_standard_error < 1.0
    assert np.isfinite(path.table["q[n_devices]"]).all()
    assert abs(path.table["q[n_devices]"].iloc[-1]) < abs(path.table["q[n_devices]"].iloc[0])


def test_a_path_needs_a_penalty() -> None:
    dataset = generate_study(n_rows=60, random_state=0).dataset
    with pytest.raises(InvalidInputError, match="must be 'l1' or 'l2'"):
        regularization_path(GenericRegressor(), dataset.X, dataset.y)
