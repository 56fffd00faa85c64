"""What every estimator of times must do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

Times = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def contract_table(n_rows: int = 80) -> tuple[pd.DataFrame, Times]:
    """Return parameters of both kinds and both roles, and times with 3 % noise."""
    rng = np.random.default_rng(11)
    X = pd.DataFrame(
        {
            "width": rng.choice([8.0, 16.0, 32.0, 64.0], n_rows),
            "optimizer": rng.choice(["adam", "sgd"], n_rows),
            "n_devices": rng.choice([1.0, 2.0, 4.0], n_rows),
        }
    )
    step = np.where(X["optimizer"] == "adam", 0.3, 0.0) + 0.02 * X["width"].to_numpy() ** 1.3
    times = step * X["n_devices"].to_numpy() ** -0.8 + 0.05
    return X, times * np.exp(0.03 * rng.standard_normal(n_rows))


class EstimatorContract:
    """Checks for an estimator; inherit, and give a fixture named `estimator`."""

    def test_predictions_are_finite_and_positive(self, estimator: Any) -> None:
        """Also far outside what was measured."""
        X, y = contract_table()
        model = clone(estimator).fit(X, y)
        far = X.assign(width=X["width"] * 1e6, n_devices=X["n_devices"] * 1e3)
        for rows in (X, far):
            predicted = model.predict(rows)
            assert np.isfinite(predicted).all() and (predicted > 0).all()

    def test_it_learns_what_the_table_says(self, estimator: Any) -> None:
        """Within a tenth, on the rows that it has seen."""
        X, y = contract_table()
        predicted = clone(estimator).fit(X, y).predict(X)
        assert float(np.mean(np.abs(predicted / y - 1))) < 0.1

    def test_times_in_other_units_give_predictions_in_those_units(self, estimator: Any) -> None:
        """Milliseconds in, milliseconds out; trees may break ties another way."""
        X, y = contract_table()
        seconds = clone(estimator).fit(X, y).predict(X)
        milliseconds = clone(estimator).fit(X, 1e3 * y).predict(X)
        np.testing.assert_allclose(milliseconds, 1e3 * seconds, rtol=0.05)

    def test_the_order_of_columns_does_not_matter(self, estimator: Any) -> None:
        """Columns are found by name."""
        X, y = contract_table()
        model = clone(estimator).fit(X, y)
        np.testing.assert_allclose(model.predict(X[list(X)[::-1]]), model.predict(X))

    def test_an_unseen_level_is_predicted_between_the_known_ones(self, estimator: Any) -> None:
        """An unseen level is an average level."""
        X, y = contract_table()
        model = clone(estimator).fit(X, y)
        known = [model.predict(X.assign(optimizer=level)) for level in ("adam", "sgd")]
        unseen = model.predict(X.assign(optimizer="lion"))
        low, high = np.minimum(*known), np.maximum(*known)
        assert ((unseen >= 0.8 * low) & (unseen <= 1.25 * high)).all()

    def test_the_same_data_and_seed_give_the_same_predictions(self, estimator: Any) -> None:
        """Bit for bit."""
        X, y = contract_table()
        first, second = (clone(estimator).fit(X, y).predict(X) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_missing_values_are_refused_with_their_row(self, estimator: Any) -> None:
        """And so are times that are not positive."""
        X, y = contract_table()
        bad = X.assign(width=X["width"].where(X.index != 4))
        for rows, times in ((bad, y), (X, np.where(X.index == 4, -1.0, y))):
            message = ""
            try:
                clone(estimator).fit(rows, times)
            except ValueError as error:
                message = str(error)
            assert "row 5" in message, f"a bad row 5 must be refused by name, but got {message!r}"
