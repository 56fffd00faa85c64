"""What-if questions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from paceline.web._answers import PlainResponse
from paceline.web._context import FileName, Here
from paceline.web._whatif import answer_what_if, find_halving, list_parameters

router = APIRouter(prefix="/api/whatif", tags=["what-if"])

Name = Annotated[str, Field(max_length=500)]
Value = Annotated[float, Field(allow_inf_nan=False)] | Annotated[str, Field(max_length=500)]


class Question(BaseModel):
    """A point to ask a model about."""

    file: Name
    point: Annotated[dict[Name, Value], Field(max_length=200)] = {}
    over: Name | None = None


@router.get("")
def parameters(here: Here, file: FileName) -> PlainResponse:
    """List the parameters of a model with the values that they can be moved to."""
    return PlainResponse(list_parameters(here.fit(file)))


@router.post("")
def ask(here: Here, question: Question) -> PlainResponse:
    """Predict the time at a point, and along one parameter through it."""
    return PlainResponse(answer_what_if(here.fit(question.file), question.point, question.over))


@router.post("/halve")
def halve(here: Here, question: Question) -> PlainResponse:
    """Say which single change would halve the time."""
    return PlainResponse(find_halving(here.fit(question.file), question.point))
