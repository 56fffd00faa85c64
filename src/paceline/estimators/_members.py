"""Who takes part in a comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paceline.dataset import Dataset
from paceline.estimators._auto import AutoMember
from paceline.estimators._black_boxes import BlackBoxRegressor
from paceline.estimators._extra_p import ExtraPRegressor
from paceline.estimators._feature_choice import add_features
from paceline.estimators._featured import FeaturedPosynomial, make_posynomial
from paceline.estimators._features import features_of
from paceline.estimators._generic import GenericRegressor
from paceline.estimators._power_law import PowerLawRegressor

Factory = Callable[[Dataset], Any]

_STRENGTH = 0.001


def default_members(random_state: int = 0) -> dict[str, Factory]:
    """Return the members of a comparison: name to a maker of an unfitted estimator."""
    return {
        "auto": lambda dataset: AutoMember(random_state),
        "generic": _generic("none", random_state),
        "generic-l1": _generic("l1", random_state),
        "generic-l2": _generic("l2", random_state),
        "posynomial": _posynomial("posynomial", random_state),
        "corrected": _posynomial("corrected", random_state),
        "power-law": lambda dataset: PowerLawRegressor(
            extrinsic=dataset.extrinsic, categorical=dataset.categorical
        ),
        "extra-p": lambda dataset: ExtraPRegressor(
            extrinsic=dataset.extrinsic, categorical=dataset.categorical
        ),
        "forest": _black_box("forest", random_state),
        "svr": _black_box("svr", random_state),
        "boosting": _black_box("boosting", random_state),
    }


def _generic(penalty: str, random_state: int) -> Factory:
    return lambda dataset: GenericRegressor(
        extrinsic=dataset.extrinsic,
        categorical=dataset.categorical,
        penalty=penalty,
        strength=_STRENGTH,
        random_state=random_state,
    )


def _posynomial(form: str, random_state: int) -> Factory:
    def make(dataset: Dataset) -> Any:
        dataset = add_features(dataset)
        if features_of(dataset) is None:
            return make_posynomial(form, dataset, random_state=random_state)[0]
        return FeaturedPosynomial(form, dataset, random_state)

    return make


def _black_box(member: str, random_state: int) -> Factory:
    return lambda dataset: BlackBoxRegressor(
        member, categorical=dataset.categorical, random_state=random_state
    )
