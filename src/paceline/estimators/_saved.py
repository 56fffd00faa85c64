"""``model.json``: a fit as plain data, read with every value checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from paceline.dataset import TimeBasis, write_text
from paceline.errors import InvalidInputError, SchemaError
from paceline.estimators._columns import Columns
from paceline.estimators._corrected import CorrectedRegressor
from paceline.estimators._correction import Blend
from paceline.estimators._difficulty import Difficulty
from paceline.estimators._expression import GenericExpression
from paceline.estimators._features import Features
from paceline.estimators._generic import GenericRegressor
from paceline.estimators._intervals import WIDENING
from paceline.estimators._measured import MeasuredRange
from paceline.estimators._metrics import Scores
from paceline.estimators._posynomial import (
    Front,
    PosynomialExpression,
    PosynomialRegressor,
)
from paceline.estimators._result import SCHEMA, FitResult
from paceline.estimators._stability import Stability

_MAX_BYTES = 50_000_000
_KIND, _VERSION = SCHEMA.rsplit("/", 1)
_SETTINGS = (
    "penalty",
    "strength",
    "power_strength",
    "cost",
    "bounds",
    "units",
    "solver",
    "random_state",
)
_POSYNOMIAL_SETTINGS = ("n_terms", "max_terms", "max_constants", "strength", "random_state")
_CORRECTED_SETTINGS = ("n_terms", "random_state")


def save_fit(fit: FitResult, path: str | Path) -> None:
    """Write `fit` as JSON, whole or not at all."""
    write_text(path, json.dumps(fit_to_dict(fit), indent=1, allow_nan=False) + "\n")


def load_fit(path: str | Path) -> FitResult:
    """Read a fit that `save_fit` wrote.

    Raises
    ------
    SchemaError
        The file is truncated, of another kind, of a newer schema or holds impossible values.
    """
    data = _read_json(Path(path))
    _check_schema(path, data)
    try:
        return fit_from_dict(data)
    except InvalidInputError as error:
        raise SchemaError(path, f"is not a usable model: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise SchemaError(
            path, f"is not a usable model ({type(error).__name__}: {error}). Fit it again."
        ) from error


def fit_to_dict(fit: FitResult) -> dict[str, Any]:
    """Return a fit as plain data."""
    extrinsic = list(fit.estimator.extrinsic or ())
    return {
        "schema": SCHEMA,
        "form": fit.form,
        "n_rows": fit.n_rows,
        "basis": fit.basis.to_dict(),
        "roles": {
            "intrinsic": [n for n in fit.measured.names if n not in extrinsic],
            "extrinsic": extrinsic,
            "categorical": list(fit.measured.levels),
        },
        "expression": fit.estimator.expression_.to_dict(),
        **_WRITERS[fit.form](fit.estimator),
        "measured": fit.measured.to_dict(),
        "scores": None if fit.scores is None else fit.scores.to_dict(),
        "noise_floor": fit.noise_floor,
        "widening": fit.widening,
        "covers": fit.covers,
        "shares": dict(fit.shares),
        "stability": None if fit.stability is None else fit.stability.to_dict(),
        "notes": list(fit.notes),
        "difficulty": None if fit.difficulty is None else fit.difficulty.to_dict(),
        "residuals": list(fit.residuals),
        **({} if fit.features is None else {"features": fit.features.to_dict()}),
    }


def fit_from_dict(data: Mapping[str, Any]) -> FitResult:
    """Return the fit that `fit_to_dict` wrote."""
    if data["form"] not in _READERS:
        known = ", ".join(map(repr, _READERS))
        raise InvalidInputError(f"`form` must be one of {known}, but got {data['form']!r}.")
    stability, difficulty = data["stability"], data.get("difficulty")
    floor, features = data.get("noise_floor"), data.get("features")
    fit = FitResult(
        form=str(data["form"]),
        estimator=_restore(data),
        measured=MeasuredRange.from_dict(data["measured"]),
        basis=TimeBasis.from_dict(data["basis"]),
        scores=_scores(data["scores"]),
        residuals=tuple(float(r) for r in data["residuals"]),
        difficulty=None if difficulty is None else Difficulty.from_dict(difficulty),
        covers=str(data["covers"]),
        shares={str(k): float(v) for k, v in data["shares"].items()},
        stability=None if stability is None else Stability.from_dict(stability),
        n_rows=int(data["n_rows"]),
        noise_floor=None if floor is None else float(floor),
        widening=float(data.get("widening", WIDENING)),  # what older files meant
        notes=tuple(str(note) for note in data["notes"]),
        features=None if features is None else Features.from_dict(features),
    )
    _check_consistent(fit)
    return fit


def _restore(data: Mapping[str, Any]) -> Any:
    roles = data["roles"]
    model = _READERS[data["form"]](data)
    model.set_params(extrinsic=list(roles["extrinsic"]), categorical=list(roles["categorical"]))
    names = _names(MeasuredRange.from_dict(data["measured"]), data.get("features"), data["form"])
    model.feature_names_in_ = np.array(names, dtype=object)
    model.n_features_in_ = len(names)
    return model


def _names(
    measured: MeasuredRange, features: Mapping[str, Any] | None, form: str
) -> tuple[str, ...]:
    """Return the columns that the estimator takes: parameters, then what is derived."""
    if features is None:
        return measured.names
    hidden = features["replaces"] if form == "posynomial" else ()
    return (*(n for n in measured.names if n not in hidden), *map(str, features["columns"]))


def _write_generic(model: GenericRegressor) -> dict[str, Any]:
    return {
        "settings": {name: getattr(model, name) for name in _SETTINGS},
        "cost": model.cost_,
        "at_bounds": list(model.at_bounds_),
    }


def _read_generic(data: Mapping[str, Any]) -> GenericRegressor:
    model = GenericRegressor(**{name: data["settings"][name] for name in _SETTINGS})
    expression = GenericExpression.from_dict(data["expression"])
    model.expression_ = expression
    model.columns_ = Columns(
        terms=tuple(t.name for t in expression.terms),
        levels={n: tuple(group) for n, group in expression.levels.items()},
        extrinsic=tuple(expression.powers),
    )
    model._stability = None
    model.cost_ = float(data["cost"])
    model.at_bounds_ = tuple(map(str, data["at_bounds"]))
    model.check_choices()
    return model


def _write_posynomial(model: PosynomialRegressor) -> dict[str, Any]:
    settings = {name: getattr(model, name) for name in _POSYNOMIAL_SETTINGS}
    return {"settings": settings, "front": model.front_.to_dict()}


def _read_posynomial(data: Mapping[str, Any]) -> PosynomialRegressor:
    model = PosynomialRegressor(**{n: data["settings"][n] for n in _POSYNOMIAL_SETTINGS})
    model.expression_ = PosynomialExpression.from_dict(data["expression"])
    model.front_ = Front.from_dict(data["front"])
    return model


def _write_corrected(model: CorrectedRegressor) -> dict[str, Any]:
    return {
        "settings": {name: getattr(model, name) for name in _CORRECTED_SETTINGS},
        "front": model.front_.to_dict(),
        "formula_error": model.formula_error_,
        "blend": None if model.blend_ is None else model.blend_.to_dict(),
    }


def _read_corrected(data: Mapping[str, Any]) -> CorrectedRegressor:
    model = CorrectedRegressor(**{n: data["settings"][n] for n in _CORRECTED_SETTINGS})
    model.expression_ = PosynomialExpression.from_dict(data["expression"])
    model.front_ = Front.from_dict(data["front"])
    model.blend_ = None if data["blend"] is None else Blend.from_dict(data["blend"])
    error = data["formula_error"]
    model.formula_error_ = None if error is None else float(error)
    return model


_WRITERS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "generic": _write_generic,
    "posynomial": _write_posynomial,
    "corrected": _write_corrected,
}
_READERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "generic": _read_generic,
    "posynomial": _read_posynomial,
    "corrected": _read_corrected,
}


def _scores(data: Mapping[str, float | None] | None) -> Scores | None:
    if data is None:
        return None
    return Scores(**{str(k): float("inf") if v is None else float(v) for k, v in data.items()})


def _check_consistent(fit: FitResult) -> None:
    """Refuse a model whose parts contradict each other or cannot be."""
    expression, measured = fit.estimator.expression_, fit.measured
    names, features = set(expression.names), fit.features
    hidden = set() if features is None else set(features.replaces)
    known = {*measured.names, *(() if features is None else features.names)} - hidden
    if names != known:
        raise InvalidInputError(
            f"expression and measured range must name the same parameters, but differ in "
            f"{', '.join(sorted(names ^ known))}."
        )
    if not set(fit.estimator.extrinsic or ()) <= set(measured.ranges):
        raise InvalidInputError("`roles` must agree with the expression, but do not.")
    limits = [*measured.ranges.values(), *(() if features is None else features.columns.values())]
    ends = [end for pair in limits for end in pair]
    rules = {
        **expression.rules(),
        "all numbers must be finite": np.isfinite([*ends, *fit.residuals]).all(),
        "ranges must be ordered": all(low <= high for low, high in limits),
        "every categorical parameter must have levels": all(measured.levels.values())
        and all(expression.levels.values()),
        "`residuals` must be sorted and not negative": list(fit.residuals)
        == sorted(abs(r) for r in fit.residuals),
        "`n_rows` must be positive": fit.n_rows > 0,
        "texts must be printable": all(
            text.isprintable() for text in (fit.covers, *fit.notes, *measured.names)
        ),
    }
    broken = [rule for rule, holds in rules.items() if not holds]
    if broken:
        raise InvalidInputError(f"{broken[0]}, but they are not so here.")


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise SchemaError(path, "must be a model file under 50 MB, but it is larger.")
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError(path, f"must be a model in JSON, but it is not ({error}).") from error
    if not isinstance(data, dict):
        raise SchemaError(path, "must be a model in JSON, but it holds no object.")
    return data


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _check_schema(path: str | Path, data: Mapping[str, Any]) -> None:
    kind, _, version = str(data.get("schema", "")).rpartition("/")
    if kind != _KIND or not (version.isascii() and version.isdigit()) or int(version) < 1:
        raise SchemaError(
            path, f"must have schema {SCHEMA!r}, but has {str(data.get('schema'))[:60]!r}."
        )
    if int(version) > int(_VERSION):
        raise SchemaError(
            path, f"was written by a newer Paceline (schema {version}). Upgrade Paceline."
        )
