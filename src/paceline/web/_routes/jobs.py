"""Uploads, fits and comparisons, and the jobs that they become."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel, Field

from paceline.errors import InvalidInputError
from paceline.web._answers import PlainResponse
from paceline.web._context import Context, FileName, Here
from paceline.web._tables import guess_roles

router = APIRouter(prefix="/api", tags=["data"])

Name = Annotated[str, Field(max_length=500)]
Names = Annotated[list[Name], Field(max_length=1000)]
Unit = Literal["s", "ms", "us"]
JobId = Annotated[str, Field(max_length=40)]


class Reading(BaseModel):
    """What the columns of a table are; empty roles are guessed."""

    file: Name
    time: Name | None = None
    time_unit: Unit | None = None
    time_per: Literal["step", "epoch", "sample"] | None = None
    intrinsic: Names = []
    extrinsic: Names = []
    categorical: Names = []
    group: Name | None = None

    def keywords(self) -> dict[str, Any]:
        """Return what was given, as readers take it."""
        given = self.model_dump(exclude={"file", "group"})
        own = {name: given[name] for name in type(self).model_fields if name in given}
        return {name: value for name, value in own.items() if value and name in _KEYWORDS}


_KEYWORDS = ("time", "time_unit", "time_per", "intrinsic", "extrinsic", "categorical")


class Fit(Reading):
    """A fit to make."""

    form: Literal["auto", "generic", "posynomial", "corrected"] = "auto"
    n_terms: Annotated[int, Field(ge=1, le=50)] | None = None
    save_as: Annotated[str, Field(max_length=100)]


class Comparison(Reading):
    """A comparison to make."""

    n_folds: Annotated[int, Field(ge=2, le=20)] = 5


@router.get("/table")
def table(
    here: Here,
    file: FileName,
    time: Annotated[str | None, Query(max_length=500)] = None,
    time_unit: Unit | None = None,
) -> PlainResponse:
    """Guess what the columns of a table are."""
    path = here.folder.find(file)
    if path.suffix.lower() not in (".csv", ".tsv"):
        raise InvalidInputError(f"A table must end in .csv or .tsv, but got {file[:100]!r}.")
    return PlainResponse({"file": file} | guess_roles(path, time, time_unit))


@router.post("/upload", status_code=201)
def upload(
    here: Here,
    name: Annotated[str, Query(max_length=100)],
    body: Annotated[bytes, Body(media_type="text/csv")],
) -> PlainResponse:
    """Keep a table in the folder, if it is one, and guess what its columns are."""
    path = here.folder.place(name, ".csv", ".tsv")
    if b"\0" in body[:1_000_000] or not body.strip():
        raise InvalidInputError("An upload must be a table of text, but this is not.")
    try:
        with path.open("xb") as file:
            file.write(body)
    except FileExistsError:
        raise InvalidInputError(
            f"An upload must have a new name, but {name!r} is in the folder already."
        ) from None
    try:
        return PlainResponse({"file": name} | guess_roles(path), 201)
    except Exception:
        path.unlink()  # what cannot be read as a table is not kept
        raise


@router.post("/fit", status_code=202)
def fit(here: Here, request: Fit) -> PlainResponse:
    """Fit a model and save it in the folder: a job."""
    data = here.folder.find(request.file)
    model = _new_file(here, request.save_as, ".json")
    # A bare table forgets what its columns are; a store beside it does not.
    is_table = data.suffix.lower() != ".db"
    store = _new_file(here, f"{model.stem}.db", ".db") if is_table else None
    job = here.jobs.start(
        "fit",
        f"{model.name} from {data.name}",
        {
            "data": str(data),
            "reading": request.keywords(),
            "form": request.form,
            "n_terms": request.n_terms,
            "group": request.group,
            "model": str(model),
            "store": None if store is None else str(store),
        },
    )
    return PlainResponse(job.to_dict(), 202)


@router.post("/compare", status_code=202)
def compare(here: Here, request: Comparison) -> PlainResponse:
    """Compare every form and black box on the same folds: a job."""
    data = here.folder.find(request.file)
    task = {
        "data": str(data),
        "reading": request.keywords(),
        "group": request.group,
        "n_folds": request.n_folds,
    }
    return PlainResponse(
        here.jobs.start("compare", f"{request.file}, {request.n_folds} folds", task).to_dict(), 202
    )


@router.get("/jobs")
def jobs(here: Here) -> PlainResponse:
    """List the jobs of this server, the newest first."""
    return PlainResponse({"jobs": [job.to_dict(with_result=False) for job in here.jobs.list()]})


@router.get("/jobs/{number}")
def job(here: Here, number: JobId) -> PlainResponse:
    """Return one job with its progress and its result."""
    return PlainResponse(here.jobs.find(number).to_dict())


@router.post("/jobs/{number}/stop")
def stop(here: Here, number: JobId) -> PlainResponse:
    """End a job."""
    return PlainResponse(here.jobs.stop(number).to_dict())


def _new_file(here: Context, name: str, suffix: str) -> Any:
    path = here.folder.place(name if name.endswith(suffix) else name + suffix, suffix)
    if path.exists():
        raise InvalidInputError(
            f"A new file must have a new name, but {path.name!r} is in the folder already."
        )
    return path
