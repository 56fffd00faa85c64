"""Planted constants against those that a fit finds again."""

from __future__ import annotations

from paceline.dataset import Dataset
from paceline.estimators import GenericRegressor, score
from paceline.validation._checks import Check, check_number
from paceline.validation._study import Study, generate_study

N_FIT = 600
N_UNSEEN = 300
POWER_TOLERANCE = 0.01
MAX_MAPE = 0.001


def check_recovery(framework: str) -> list[Check]:
    """Check that the generic form finds a framework's constants in times without noise."""
    return check_study(framework, generate_study(framework, n_rows=N_FIT + N_UNSEEN, noise=0.0))


def check_study(framework: str, study: Study) -> list[Check]:
    """Fit the first rows of a study; check the powers, and the error on the other rows."""
    fitted, unseen = (study.dataset.take(rows) for rows in _rows(study))
    model = GenericRegressor(extrinsic=fitted.extrinsic, categorical=fitted.categorical)
    model.fit(fitted.X, fitted.y)
    source = f"{framework} column of thesis table 4.3, planted without noise"
    checks = [
        check_number(
            f"recovered power of {name}, {framework}",
            source,
            expected=planted,
            got=model.expression_.powers[name],
            tolerance=POWER_TOLERANCE,
            kind="recovery",
        )
        for name, planted in study.truth.powers.items()
    ]
    return [*checks, _check_error(framework, source, unseen, model)]


def _check_error(framework: str, source: str, unseen: Dataset, model: GenericRegressor) -> Check:
    return check_number(
        f"error on {len(unseen)} unseen rows as a share, {framework}",
        source,
        expected=0.0,
        got=score(unseen.y, model.predict(unseen.X)).mape,
        tolerance=MAX_MAPE,
        kind="recovery",
    )


def _rows(study: Study) -> tuple[range, range]:
    return range(N_FIT), range(N_FIT, study.dataset.n_rows)
