"""One thread for small matrices.

A fit multiplies matrices of a thousand rows, over and over: handing each product to several
threads costs more than it saves, and many times more when the machine is busy.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Keep linear algebra on one thread within the context."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


@cache
def _controller() -> Any:
    return ThreadpoolController()
