"""The application: routes behind a guard, and the pages that use them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from paceline import __version__
from paceline.errors import MissingDependencyError, PacelineError
from paceline.web._answers import PlainResponse, answer_error, answer_http, answer_invalid
from paceline.web._context import Context
from paceline.web._guard import Guard
from paceline.web._routes import jobs, models, oracle, plans, studies, whatif
from paceline.web._settings import Settings

_STATIC = Path(str(files("paceline.web") / "static"))
_ROUTERS = (studies, models, whatif, jobs, oracle, plans)


def build_app(settings: Settings) -> FastAPI:
    """Return the application of a folder."""
    context = Context.of(settings)

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        yield
        context.jobs.close()

    app = FastAPI(
        title="Paceline",
        version=__version__,
        summary="Predict, explain and plan the pace of distributed deep-learning training.",
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
        default_response_class=PlainResponse,
        lifespan=living,
    )
    app.state.context = context
    _answer(app)
    for module in _ROUTERS:
        app.include_router(module.router)
    _add_pages(app)
    app.add_middleware(_guarded, settings=settings)
    return app


def _guarded(app: ASGIApp, settings: Settings) -> ASGIApp:
    return Guard(app, settings)


def _answer(app: FastAPI) -> None:
    app.add_exception_handler(PacelineError, answer_error)
    app.add_exception_handler(OSError, answer_error)
    app.add_exception_handler(RequestValidationError, answer_invalid)
    app.add_exception_handler(HTTPException, answer_http)


def _add_pages(app: FastAPI) -> None:
    plotly = _plotly_script()

    @app.get("/", include_in_schema=False)
    def index() -> FileResponse:
        return FileResponse(_STATIC / "index.html", headers={"cache-control": "no-cache"})

    @app.get("/static/plotly.min.js", include_in_schema=False)
    def charts() -> FileResponse:
        kept = {"cache-control": "max-age=86400"}
        return FileResponse(plotly, media_type="text/javascript", headers=kept)

    app.mount("/static", StaticFiles(directory=_STATIC), name="static")


def _plotly_script() -> Path:
    found = find_spec("plotly")  # where it is, without loading it
    if found is None or found.origin is None:
        raise MissingDependencyError("The web application", "plotly", "web")
    return Path(found.origin).parent / "package_data" / "plotly.min.js"
