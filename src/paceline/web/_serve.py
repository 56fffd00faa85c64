"""Start the application."""

from __future__ import annotations

import socket
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from paceline.errors import InvalidInputError, MissingDependencyError
from paceline.web._settings import WILDCARDS, Settings

if TYPE_CHECKING:
    from fastapi import FastAPI


def make_app(settings: Settings) -> FastAPI:
    """Return the application of a folder, for any server that speaks ASGI.

    Raises
    ------
    MissingDependencyError
        When FastAPI is not installed.
    """
    if find_spec("fastapi") is None:
        raise MissingDependencyError("The web application", "fastapi", "web")
    from paceline.web._app import build_app

    return build_app(settings)


def serve(settings: Settings, *, port: int = 8765, say: Callable[[str], None] = print) -> None:
    """Serve a folder until interrupted.

    Parameters
    ----------
    settings
        What is served.
    port
        Where; 0 takes a free one.
    say
        Called with the address, which carries the token, as soon as it can be opened.

    Raises
    ------
    InvalidInputError
        When the port or the host cannot be had.
    MissingDependencyError
        When FastAPI or uvicorn is not installed.
    """
    if find_spec("uvicorn") is None:
        raise MissingDependencyError("The web application", "uvicorn", "web")
    import uvicorn

    app = make_app(settings)
    with _listen(settings.host, port) as listener:
        config = uvicorn.Config(
            app, log_level="warning", server_header=False, timeout_graceful_shutdown=3
        )
        say(_address(settings, listener.getsockname()[1]))
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            return  # how a person ends it


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)  # before the address is printed, so that it can be opened at once
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(
            f"The address to serve at must be free, but {host} port {port} is not: {reason}. "
            "Try: --port 0"
        ) from error
    return listener


def _address(settings: Settings, port: int) -> str:
    """Return what to open; the token stands behind #, which browsers never send."""
    host = "127.0.0.1" if settings.host in WILDCARDS else settings.host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/#token={settings.token}"
