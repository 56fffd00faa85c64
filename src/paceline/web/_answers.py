"""What is sent back: plain JSON, and one line where something is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from paceline.errors import ExecutionError, InfeasibleError
from paceline.web._folder import NoSuchFileError

_LONGEST = 600


class PlainResponse(JSONResponse):
    """JSON that any text survives: half a character in a name too."""

    def render(self, content: Any) -> bytes:
        """Return the bytes of plain data; what is not finite becomes null."""
        return json.dumps(plain(content), ensure_ascii=True, allow_nan=False).encode("ascii")


def plain(value: Any) -> Any:
    """Return data of any of our kinds as JSON knows it; not finite: None."""
    if isinstance(value, str | bool | int | None):
        return value
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple | set):
        return [plain(part) for part in value]
    return value if isinstance(value, int | float | str) else str(value)


def refuse(message: object, status: int) -> PlainResponse:
    """Return a refusal with its reason in one line."""
    return PlainResponse({"error": " ".join(str(message).split())[:_LONGEST]}, status_code=status)


async def answer_error(request: Request, error: Exception) -> PlainResponse:
    """Answer an error of ours: what was asked cannot be done."""
    message = request.app.state.context.without_path(str(error))
    if isinstance(error, NoSuchFileError):
        return refuse(message, 404)
    return refuse(message, 409 if isinstance(error, InfeasibleError | ExecutionError) else 400)


async def answer_invalid(request: Request, error: Exception) -> PlainResponse:
    """Answer a request that does not have the form it must have."""
    assert isinstance(error, RequestValidationError)  # registered for nothing else
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    return refuse(f"`{where}` must be as the API says, but: {first['msg']}.", 422)


async def answer_http(request: Request, error: Exception) -> PlainResponse:
    """Answer what the framework refuses: an unknown path or method."""
    assert isinstance(error, HTTPException)  # registered for nothing else
    answer = refuse(error.detail, error.status_code)
    answer.headers.update(error.headers or {})
    return answer
