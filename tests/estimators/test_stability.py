import numpy as np
import pandas as pd
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


def confounded_table() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    network = rng.choice(["x", "y", "z"], 150)
    X = pd.DataFrame(
        {
            "width": rng.choice([1.0, 2.0, 4.0, 8.0], 150),
            "network": network,
            "data": ["of " + name for name in network],
            "n_devices": rng.choice([1.0, 2.0, 4.0], 150),
        }
    )
    levels = X["network"].map({"x": 0.0, "y": 5.0, "z": 9.0})
    y = (2 * X["width"] + levels) * X["n_devices"] ** -0.9 + 1
    return X, y * np.exp(0.02 * rng.standard_normal(150))


def test_constants_that_can_only_be_told_together_are_not_identified() -> None:
    X, y = confounded_table()
    model = GenericRegressor(["n_devices"]).fit(X, y)
    spreads = study_stability(model, n_seeds=1, n_bootstrap=10).spreads
    for name in ("level[network=y]", "level[network=z]", "level[data=of y]", "level[data=of z]"):
        assert spreads[name].problem == "confounded" and not spreads[name].is_identified
    assert spreads["q[n_devices]"].is_identified
    alone = GenericRegressor(["n_devices"]).fit(X.drop(columns="data"), y)
    assert (
        study_stability(alone, n_seeds=1, n_bootstrap=10).spreads["level[network=z]"].is_identified
    )


@pytest.mark.filterwarnings("ignore::paceline.errors.BoundWarning")
def test_a_constant_at_its_bound_is_not_identified() -> None:
    X, y = confounded_table()
    model = GenericRegressor(["n_devices"], bounds={"powers": (-0.5, 2.0)}).fit(X, y)
    spread = study_stability(model, n_seeds=1, n_bootstrap=10).spreads["q[n_devices]"]
    assert spread.problem == "at its bound" and not spread.is_identified


def test_a_row_measured_twice_counts_twice_in_the_bootstrap() -> None:
    X, y = confounded_table()
    once = GenericRegressor(["n_devices"]).fit(X, y)
    twice = GenericRegressor(["n_devices"]).fit(
        pd.concat([X, X], ignore_index=True), np.concatenate([y, y])
    )
    assert twice.row_weights_.sum() == 2 * once.row_weights_.sum()
    widths = [
        study_stability(m, n_seeds=0, n_bootstrap=40).spreads["q[n_devices]"]
        for m in (once, twice)
    ]
    ratio = (widths[1].high - widths[1].low) / (widths[0].high - widths[0].low)
    assert ratio == pytest.approx(0.5**0.5, rel=0.35)


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
