import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime

from paceline.estimators import GenericRegressor
from paceline.estimators._problem import Problem


def make_problem(**settings: object) -> tuple[Problem, np.ndarray]:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "width": rng.choice([0.0, 1.0, 2.0, 4.0], 60),
            "depth": rng.uniform(1, 9, 60),
            "kind": rng.choice(["a", "b", "c"], 60),
            "n_devices": rng.choice([1.0, 2.0, 4.0], 60),
        }
    )
    y = rng.uniform(1, 5, 60)
    model = GenericRegressor(extrinsic=["n_devices"], **settings).fit(X, y)
    rng = np.random.default_rng(4)
    x = rng.uniform(0.2, 1.5, len(model.x_))
    return model.problem_, x


@pytest.mark.parametrize("penalty", ["none", "l1", "l2"])
@pytest.mark.parametrize("cost", ["absolute", "relative"])
@pytest.mark.filterwarnings("ignore::paceline.errors.PacelineWarning")
def test_the_gradient_is_the_slope_of_the_smoothed_cost(penalty: str, cost: str) -> None:
    problem, x = make_problem(penalty=penalty, cost=cost, strength=0.3, power_strength=0.7)
    _, gradient = problem.smooth_cost(x, 0.1)
    numeric = approx_fprime(x, lambda z: problem.smooth_cost(z, 0.1)[0], 1e-7)
    np.testing.assert_allclose(gradient, numeric, rtol=2e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::paceline.errors.PacelineWarning")
def test_the_jacobian_is_the_slope_of_the_residuals() -> None:
    problem, x = make_problem()
    numeric = approx_fprime(x, problem.residuals, 1e-7)
    np.testing.assert_allclose(problem.jacobian(x), numeric, rtol=2e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::paceline.errors.PacelineWarning")
def test_the_penalty_runs_over_all_constants_but_the_floor() -> None:
    l1, x = make_problem(penalty="l1", strength=2.0, power_strength=5.0)
    a, p, levels, q = l1.slices
    coefficients = np.concatenate([x[a], x[levels]])
    powers = np.concatenate([x[p], x[q]])
    assert l1.penalty_of(x) == pytest.approx(2 * coefficients.sum() + 5 * np.abs(powers).sum())
    l2, _ = make_problem(penalty="l2", strength=2.0, power_strength=5.0)
    assert l2.penalty_of(x) == pytest.approx(2 * (coefficients**2).sum() + 5 * (powers**2).sum())
    assert l2.cost(x) == pytest.approx(np.abs(l2.residuals(x)).mean() + l2.penalty_of(x))


@pytest.mark.filterwarnings("ignore::paceline.errors.PacelineWarning")
def test_values_that_repeat_and_values_that_do_not_give_the_same_powers() -> None:
    problem, x = make_problem()
    few = problem.take(np.arange(60).repeat(8))
    assert few._distinct is not None and problem._distinct is None
    np.testing.assert_allclose(few.residuals(x)[::8], problem.residuals(x), rtol=1e-12)
