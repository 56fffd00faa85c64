import numpy as np
import pandas as pd
import pytest

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError
from paceline.estimators import FitResult, Run, batch_notes, fit, predict_run


def fitted(time_per: str | None = "step") -> FitResult:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "n_devices": rng.choice([1.0, 2, 4, 8], 120),
            "device_batch": rng.choice([16.0, 32, 64, 128], 120),
        }
    )
    y = 0.01 * X["device_batch"] * X["n_devices"] ** 0.1 * np.exp(0.01 * rng.normal(size=120))
    return fit(Dataset.from_frame(X.assign(time_s=y), time_per=time_per), n_seeds=1)


@pytest.fixture(scope="module")
def model() -> FitResult:
    return fitted()


ROWS = pd.DataFrame({"n_devices": [1.0, 8.0], "device_batch": [64.0, 64.0]})


def test_a_run_takes_its_steps_devices_and_price(model: FitResult) -> None:
    step = model.predict(ROWS)["predicted_s"].to_numpy()
    run = predict_run(model, ROWS, Run(n_samples=1000, n_epochs=3, price=2.0))
    steps = np.ceil(1000 / np.array([64, 512])) * 3
    assert run["run_s"].to_numpy() == pytest.approx(step * steps)
    assert run["device_hours"].to_numpy() == pytest.approx(step * steps * [1, 8] / 3600)
    assert run["money"].to_numpy() == pytest.approx(2 * run["device_hours"].to_numpy())
    assert (run["run_s_lower"] < run["run_s"]).all() and (run["run_s"] < run["run_s_upper"]).all()


def test_a_batch_of_nobody_is_said_to_be_that_of_all(model: FitResult) -> None:
    assert batch_notes(model) == ()
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"batch": rng.choice([16.0, 32, 64], 60), "n_gpus": rng.choice([1.0, 2], 60)})
    frame = X.assign(time_s=0.01 * X["batch"] / X["n_gpus"] + 0.1)
    (note,) = batch_notes(fit(Dataset.from_frame(frame, time_per="step"), n_seeds=1))
    assert "`batch`" in note and "device_batch" in note


def test_efficiency_is_the_share_of_a_lone_device(model: FitResult) -> None:
    run = predict_run(model, ROWS, Run(n_samples=512_000))
    assert run["efficiency"].iloc[0] == pytest.approx(1.0)
    assert run["efficiency"].iloc[1] == pytest.approx(8**-0.1, rel=0.05)


def test_a_time_of_unknown_basis_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidInputError, match="--time-per step"):
        predict_run(fitted(None), ROWS, Run(n_samples=10))


@pytest.mark.parametrize(
    "settings", [{"n_samples": 0}, {"n_samples": 5, "n_epochs": 0}, {"n_samples": 5, "price": -1}]
)
def test_an_impossible_run_is_refused(settings: dict) -> None:
    with pytest.raises(InvalidInputError, match="must hold"):
        Run(**settings)
