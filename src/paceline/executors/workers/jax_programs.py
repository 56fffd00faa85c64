"""Compiled programs of JAX that outlive a process."""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
import time
from typing import Any

import jax

_REMEMBERED_S = 24 * 3600.0
_WORTHWHILE_S = 0.2


def remember() -> None:
    """Keep compiled programs for the next processes: compiling takes seconds, a step does not.

    On this host only (programs are for its processor), of this user, for a day.
    """
    folder = pathlib.Path(tempfile.gettempdir(), f"paceline-jax-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return  # each process compiles for itself
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        return  # a stranger's programs are not run
    for entry in folder.iterdir():
        with contextlib.suppress(OSError):  # another worker may have been quicker
            if time.time() - entry.stat().st_mtime > _REMEMBERED_S:
                entry.unlink()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _WORTHWHILE_S)
    with contextlib.suppress(ImportError, AttributeError):  # of another JAX: only slower
        _let_every_worker_write()


def _let_every_worker_write() -> None:
    """Let all write: JAX lets the first one, but the programs of each are its own to it."""
    from jax._src import compiler, distributed

    write, state = compiler._cache_write, distributed.global_state

    def write_as_the_first(*arguments: Any, **more: Any) -> None:
        own, state.process_id = state.process_id, 0
        try:
            write(*arguments, **more)
        finally:
            state.process_id = own

    compiler._cache_write = write_as_the_first
