"""What is not worth showing, and what is not worth trying to the end."""

import numpy as np
import pandas as pd
import pytest

from paceline.estimators import PosynomialRegressor
from paceline.estimators._columns import Index
from paceline.estimators._posynomial import choice_folds
from paceline.estimators._posynomial._candidates import Candidates
from paceline.estimators._posynomial._problem import NEUTRAL, PosynomialProblem
from paceline.estimators._posynomial._rows import layout_of


def noisy(n_rows: int, noise: float, power: float) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"layers": rng.choice([2.0, 4, 8, 16], n_rows)})
    X = X.assign(learning_rate=10.0 ** rng.uniform(-6, -1, n_rows))
    y = 0.01 * X["layers"] * X["learning_rate"] ** power
    return X, y.to_numpy() * np.exp(rng.normal(0, noise, n_rows))


@pytest.mark.parametrize(("noise", "is_shown"), [(0.2, False), (0.01, True)])
def test_a_power_that_the_error_drowns_is_not_shown(noise: float, is_shown: bool) -> None:
    X, y = noisy(3000, noise, power=0.005)
    (term,) = PosynomialRegressor(n_terms=1).fit(X, y).expression_.terms
    assert ("learning_rate" in term.powers) is is_shown


def test_a_power_that_is_expected_stays_though_it_was_not_measured() -> None:
    X, y = noisy(60, 0.05, power=0.0)
    X = X.assign(seq_len=np.where(np.arange(60) < 3, 4096.0, 4097.0))
    (term,) = PosynomialRegressor(n_terms=1).fit(X, y).expression_.terms
    assert term.powers["seq_len"] == pytest.approx(1.0, abs=0.05)


def candidates() -> Candidates:
    X, y = noisy(100, 0.05, power=0.0)
    layout = layout_of(X, None, None)
    rows, folds = choice_folds(np.arange(100), layout.n_columns, 0)
    problem = PosynomialProblem(
        rows=layout.encode(X.iloc[rows]),
        target=np.log(y[rows]),
        weights=np.full(100, 0.01),
        strengths=NEUTRAL,
    )
    return Candidates(problem, layout, np.arange(100), folds, 2, 40, 0.1, 0)


def test_folds_can_be_held_out_in_two_goes() -> None:
    one, two = candidates(), candidates()
    first = one.hold_out(0.3)
    assert len(first) == 30
    assert np.isfinite(one.errors(0)[first]).all()
    assert np.isnan(np.delete(one.errors(0), first)).all()
    assert len(one.hold_out()) == len(two.hold_out()) == 100
    assert one.errors(0) == pytest.approx(two.errors(0))


def paired(is_paired: bool) -> tuple[pd.DataFrame, np.ndarray]:
    """Return times that two labels decide together, or each for itself."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"batch": rng.choice([8.0, 16, 32, 64, 128], 200)})
    X = X.assign(job=rng.choice(list("abc"), 200), gpu=rng.choice(list("xyz"), 200))
    pairs = pd.factorize(X["job"] + X["gpu"] if is_paired else X["job"])[0]
    times = 0.01 * X["batch"].to_numpy() * rng.uniform(0.2, 5.0, 9)[pairs] + 0.02
    return X, times * np.exp(rng.normal(0, 0.05, 200))


@pytest.mark.parametrize("is_paired", [True, False])
def test_what_the_first_folds_show_to_be_worse_is_left(
    is_paired: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: dict[int, list[float]] = {}
    hold_out = Candidates.hold_out

    def spy(self: Candidates, share: float = 1.0) -> Index:
        shares.setdefault(id(self), []).append(share)
        return hold_out(self, share)

    monkeypatch.setattr(Candidates, "hold_out", spy)
    monkeypatch.setattr("paceline.estimators._posynomial._regressor.by_chance", lambda _: -9.0)
    model = PosynomialRegressor(max_terms=2).fit(*paired(is_paired))
    assert bool(model.layout_.composed) is is_paired
    assert sorted(max(s) for s in shares.values()) == [pytest.approx(0.34), 1.0]
