"""The layer graph of a network in a file of the user's, which is run to build it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import SOURCE_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

from paceline.errors import InvalidInputError, MissingDependencyError
from paceline.workloads._graph import LayerGraph
from paceline.workloads._module import check_arguments
from paceline.workloads._trace import trace_module

_RUN_AS = "paceline_traced_file"


def trace_file(
    file: str | Path,
    name: str,
    shape: Sequence[int],
    *,
    arguments: Mapping[str, Any] | None = None,
    vocabulary: int | None = None,
    loss: str = "cross_entropy",
    option: str = "",
) -> LayerGraph:
    """Return the layers of the module that a class or function of a file gives.

    The file is run here, as Python would import it; the module is built on the meta device, so
    that its weights take no memory.

    Parameters
    ----------
    file, name
        The Python file, and what to call in it.
    shape, vocabulary, loss
        As `trace_module` takes them.
    arguments
        Keywords for the call.
    option
        Of the command at hand, by which a missing keyword can be given; it is named in errors.

    Raises
    ------
    InvalidInputError
        When there is no such file or name, or when it fails; says how.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError("Tracing a module", "PyTorch", "torch") from error
    path = Path(file)
    given = dict(arguments or {})
    check_arguments(path, name, given, option)
    make = getattr(_run(path), name)
    try:
        with torch.device("meta"):
            module = make(**given)
    except Exception as error:
        raise InvalidInputError(
            f"`{name}` in {path} must build a module, but {_short(error)}"
        ) from error
    if not isinstance(module, torch.nn.Module):
        raise InvalidInputError(
            f"`{name}` in {path} must give a torch module, but gave a {type(module).__name__}."
        )
    return trace_module(module, shape, vocabulary=vocabulary, name=name, loss=loss)


def _run(path: Path) -> ModuleType:
    if path.suffix not in SOURCE_SUFFIXES:
        raise InvalidInputError(f"--module must name a Python file, but {str(path)!r} is none.")
    module = ModuleType(_RUN_AS)
    module.__file__ = str(path)
    sys.modules[_RUN_AS] = module  # classes look their own module up, dataclasses among them
    try:
        # not imported: byte code that is kept misses edits within the same second
        exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), module.__dict__)
    except Exception as error:
        raise InvalidInputError(f"{path} must run without error, but {_short(error)}") from error
    return module


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}".rstrip(": ") + "."
