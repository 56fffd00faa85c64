"""Who may ask for what: host, token, size, and the headers of every answer."""

from __future__ import annotations

import secrets
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paceline.web._answers import refuse
from paceline.web._settings import LOOPBACK, WILDCARDS, Settings

TOKEN_HEADER = "x-paceline-token"
UPLOAD_PATH = "/api/upload"
_MOST_BYTES = 1_000_000  # of a request that is no upload
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "  # Plotly styles
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}


class Guard:
    """Stand before the application.

    Parameters
    ----------
    app
        What is guarded.
    settings
        Its host, token and limits.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        shielded = _shield(send, scope["path"])
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, shielded)
            return
        await self._limited(scope, receive, shielded)

    def _refusal(self, scope: Scope, headers: dict[bytes, str]) -> Any:
        if not self._is_own_host(headers.get(b"host", ""), scope.get("server")):
            return refuse("The host of a request must be this server's own, but is not.", 421)
        if self._needs_token(scope):
            given = headers.get(TOKEN_HEADER.encode(), "")
            expected = self._settings.token
            if not secrets.compare_digest(given.encode(), expected.encode()):
                return refuse(
                    "A request that changes something needs the token. Open the address that "
                    "`paceline serve` printed.",
                    403,
                )
        length = headers.get(b"content-length", "0")
        if length.isascii() and length.isdigit() and int(length) > self._most_bytes(scope):
            return refuse(_too_large(self._most_bytes(scope)), 413)
        return None

    def _needs_token(self, scope: Scope) -> bool:
        if scope["method"] not in _SAFE_METHODS:
            return True
        # whoever can reach a server that listens to other machines may not read without it
        return not self._settings.is_local and scope["path"].startswith("/api/")

    def _is_own_host(self, header: str, server: tuple[str, int] | None) -> bool:
        name = _host_name(header)
        if name in (*LOOPBACK, self._settings.host.lower()):
            return True
        # A name could be made to point here by anybody; the address itself cannot.
        is_anywhere = self._settings.host in WILDCARDS
        return is_anywhere and server is not None and name == str(server[0]).lower()

    def _most_bytes(self, scope: Scope) -> int:
        is_upload = scope["path"] == UPLOAD_PATH
        return self._settings.max_upload_bytes if is_upload else _MOST_BYTES

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what comes, since a length need not be given or true."""
        limit, seen = self._most_bytes(scope), 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise HTTPException(413, _too_large(limit))
            return message

        await self._app(scope, counted, send)


def _too_large(limit: int) -> str:
    return f"A request must have at most {limit / 1e6:g} MB, but this has more."


def _host_name(header: str) -> str:
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def _shield(send: Send, path: str) -> Send:
    """Add the headers that every answer carries."""

    async def shielded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [(n, v) for n, v in message["headers"] if n not in _HEADERS]
            if path.startswith("/api/"):
                headers.append((b"cache-control", b"no-store"))
            message["headers"] = [*headers, *_HEADERS.items()]
        await send(message)

    return shielded
