"""A fitted model: formula, shares, and the front of expressions to choose from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from paceline.errors import InvalidInputError
from paceline.web._answers import PlainResponse
from paceline.web._context import Context, FileName, Here
from paceline.web._formula import typeset

router = APIRouter(prefix="/api", tags=["model"])

Name = Annotated[str, Field(max_length=500)]


class Choice(BaseModel):
    """Which expression of a front to use, and what it is fitted to."""

    file: Name
    data: Name
    n_terms: Annotated[int, Field(ge=1, le=50)]


@router.get("/model")
def model(here: Here, file: FileName) -> PlainResponse:
    """Explain a model."""
    from paceline.explainers import explain
    from paceline.reports.views import view_front, view_shares

    fit = here.fit(file)
    explanation = explain(fit)
    return PlainResponse(
        {
            "name": file,
            "form": fit.form,
            "formula": explanation.formula,
            "typeset": typeset(fit.estimator.expression_),
            "basis": explanation.basis,
            "facts": explanation.facts,
            "warnings": explanation.warnings,
            "notes": fit.notes,
            "scores": None if fit.scores is None else fit.scores.to_dict(),
            "noise_floor": fit.noise_floor,
            "covers": fit.covers,
            "n_rows": fit.n_rows,
            "shares": [vars_of(share) for share in view_shares(explanation)],
            "front": [vars_of(point) for point in view_front(fit)],
            "data": _data_of(here, file, fit.measured.names),
        }
    )


@router.post("/model/use", status_code=202)
def use(here: Here, choice: Choice) -> PlainResponse:
    """Fit the expression with so many terms, and keep it beside the others: a job."""
    fit = here.fit(choice.file)
    if fit.form == "generic":
        raise InvalidInputError("Only a posynomial has a front of expressions, not this model.")
    data = here.folder.find(choice.data)
    stem = Path(choice.file).stem.split("-terms-")[0]
    target = here.folder.place(f"{stem}-terms-{choice.n_terms}.json", ".json")
    reading: dict[str, Any] = {}
    if data.suffix.lower() != ".db":
        reading = _reading_of(fit)
    job = here.jobs.start(
        "fit",
        f"{target.name}: {choice.n_terms} terms",
        {
            "data": str(data),
            "reading": reading,
            "form": "corrected" if fit.form == "corrected" else "posynomial",
            "n_terms": choice.n_terms,
            "group": None,
            "model": str(target),
            "store": None,
        },
    )
    return PlainResponse(job.to_dict(), 202)


def vars_of(noun: Any) -> dict[str, Any]:
    """Return the fields of one of our nouns."""
    from dataclasses import asdict

    return asdict(noun)


def _reading_of(fit: Any) -> dict[str, Any]:
    """Return how a bare table is to be read for the same parameters as the model's."""
    extrinsic = [n for n in fit.estimator.extrinsic if n in fit.measured.names]
    return {
        "extrinsic": extrinsic,
        "intrinsic": [n for n in fit.measured.names if n not in extrinsic],
        "categorical": list(fit.measured.levels),
        **fit.basis.to_dict(),
    }


def _data_of(here: Context, file: str, names: tuple[str, ...]) -> list[str]:
    """Return the data files of the folder, those that seem to be the model's first."""
    stem = Path(file).stem.split("-terms-")[0]
    return sorted(here.folder.names("store", "table"), key=lambda n: _unlikeness(n, stem))


def _unlikeness(name: str, stem: str) -> tuple[bool, bool, str]:
    path = Path(name)
    return (path.stem != stem, path.suffix != ".db", name)
