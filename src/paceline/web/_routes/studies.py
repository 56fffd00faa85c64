"""Files of the folder, and campaigns with their progress."""

from __future__ import annotations

from fastapi import APIRouter

from paceline import __version__
from paceline.errors import PacelineError
from paceline.web._answers import PlainResponse
from paceline.web._context import FileName, Here
from paceline.web._study_view import view_study

router = APIRouter(prefix="/api", tags=["studies"])


@router.get("/about")
def about(here: Here) -> PlainResponse:
    """Say what is served."""
    return PlainResponse(
        {
            "version": __version__,
            "folder": here.folder.path.name,
            "max_upload_bytes": here.settings.max_upload_bytes,
        }
    )


@router.get("/files")
def files(here: Here) -> PlainResponse:
    """List the tables, stores, models, plans and clusters of the folder."""
    return PlainResponse({"files": here.folder.files()})


@router.get("/studies")
def studies(here: Here) -> PlainResponse:
    """List the stores of the folder with their progress; a damaged one says so."""
    found = []
    for entry in here.folder.files():
        if entry["kind"] == "store":
            try:
                view = view_study(here.folder.find(entry["name"]))
            except PacelineError as error:
                view = {"error": here.without_path(str(error))}
            found.append(entry | view)
    return PlainResponse({"studies": found})


@router.get("/study")
def study(here: Here, file: FileName) -> PlainResponse:
    """Return one store with its newest trials, failed ones first."""
    return PlainResponse({"name": file} | view_study(here.folder.find(file), with_trials=True))
