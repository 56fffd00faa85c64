"""The user's own network, in a file of theirs: a class or a function that gives a torch module."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.space import Parameter
from paceline.workloads._base import Values
from paceline.workloads._own import OwnWorkload

LOSSES = ("cross_entropy", "mse")


class ModuleWorkload(OwnWorkload):
    """A network that a file of the user's builds.

    The file is read and never run here: workers run it. All intrinsic parameters but
    `optimizer` and `learning_rate` are given to the class or function as keywords.

    Parameters
    ----------
    file, name
        The Python file, and what to call in it.
    parameters
        Intrinsic parameters of the space.
    sample
        One input: ``{"shape": [...], "n_classes": n}``, with ``"vocabulary"`` for tokens.
    loss
        ``"cross_entropy"``, or ``"mse"`` against the input itself.

    Raises
    ------
    InvalidInputError
        When there is no such file, no such name in it, or it does not take these keywords.
    """

    def __init__(
        self,
        file: str | Path,
        name: str,
        *,
        parameters: Sequence[Parameter] = (),
        sample: Mapping[str, Any],
        loss: str = "cross_entropy",
    ) -> None:
        super().__init__(name, f"your own, {Path(file).name}", parameters)
        self.file, self.sample, self.loss = Path(file), dict(sample), loss
        check_call(self.file, name, self.own_names)

    def job_keywords(self, values: Values | None = None) -> dict[str, Any]:
        """Return `module`, `sample`, `loss` and `optimizer` of a job."""
        given = self.complete(values)
        arguments = {name: given[name] for name in self.own_names}
        return {
            "module": {"file": str(self.file), "name": self.name, "arguments": arguments},
            "sample": self.sample,
            "loss": self.loss,
            "optimizer": self.optimizer(values),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signature:
    names: tuple[str, ...]  # of what can be given by keyword
    required: tuple[str, ...]
    takes_any: bool  # **keywords


def check_call(file: Path, name: str, keywords: Iterable[str]) -> None:
    """Refuse a file without `name`, or whose `name` does not take these keywords.

    What cannot be told without running the file (an inherited constructor, a name made by
    a call) is left to the workers.
    """
    given = tuple(keywords)
    misfit = _misfit(file, name, given)
    if misfit is not None:
        raise InvalidInputError(
            f"`{name}` in {file} must take the intrinsic parameters of the study as keywords, but "
            f"{misfit.problem}: the study gives {', '.join(given) or 'none'}, it takes "
            f"{misfit.takes}."
        )


def check_arguments(file: Path, name: str, keywords: Iterable[str], option: str = "") -> None:
    """Refuse as `check_call` does, where no study gives the keywords but perhaps an `option`."""
    given = tuple(keywords)
    misfit = _misfit(file, name, given)
    if misfit is None:
        return
    remedy = f" Give it: {option} {misfit.missing}=VALUE" if option and misfit.missing else ""
    raise InvalidInputError(
        f"`{name}` in {file} must be called with all that it needs and nothing else, but "
        f"{misfit.problem}: it is given {', '.join(given) or 'none'}, it takes {misfit.takes}."
        f"{remedy}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Misfit:
    problem: str  # in words
    takes: str  # the names that it would take
    missing: str  # what it needs and is not given; empty when it is given too much


def _misfit(file: Path, name: str, given: Sequence[str]) -> _Misfit | None:
    signature = _signature(_defined(_parsed(file), name, file))
    if signature is None:
        return None
    takes = ", ".join(signature.names) or "nothing"
    unknown = [n for n in given if n not in signature.names and not signature.takes_any]
    if unknown:
        return _Misfit(problem=f"it does not take `{unknown[0]}`", takes=takes, missing="")
    missing = [n for n in signature.required if n not in given]
    if missing:
        return _Misfit(problem=f"it needs `{missing[0]}` too", takes=takes, missing=missing[0])
    return None


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes(), filename=str(file))
    except OSError as error:
        raise InvalidInputError(
            f"--module must name a readable Python file, but {str(file)!r} is not: "
            f"{error.strerror}."
        ) from error
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise InvalidInputError(
            f"--module must name a Python file, but {str(file)!r} is none{line}: {error.args[0]}."
        ) from error


def _defined(tree: ast.Module, name: str, file: Path) -> ast.stmt:
    known: dict[str, ast.stmt] = {}
    for statement in ast.walk(tree) if _is_dynamic(tree) else tree.body:
        if isinstance(statement, ast.stmt):
            known |= dict.fromkeys(_names(statement), statement)
    if name not in known:
        raise UnknownNameError(f"class or function of {file}", name, known)
    return known[name]


def _is_dynamic(tree: ast.Module) -> bool:
    """Return whether definitions may lie below an ``if`` or ``try`` of the file."""
    return any(isinstance(statement, ast.If | ast.Try) for statement in tree.body)


def _names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    if isinstance(statement, ast.ImportFrom | ast.Import):
        return [alias.asname or alias.name for alias in statement.names]
    return []


def _signature(definition: ast.stmt) -> _Signature | None:
    if isinstance(definition, ast.FunctionDef):
        return None if definition.decorator_list else _arguments(definition.args, 0)
    if isinstance(definition, ast.ClassDef) and not definition.decorator_list:
        for statement in definition.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                return _arguments(statement.args, 1)
    return None


def _arguments(arguments: ast.arguments, n_bound: int) -> _Signature:
    plain = [a.arg for a in arguments.args]
    n_free = len(plain) - len(arguments.defaults)
    needed = [a.arg for a in arguments.posonlyargs][n_bound:]  # cannot be given: refused
    needed += plain[max(n_bound - len(arguments.posonlyargs), 0) : n_free]
    needed += [
        a.arg
        for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    names = [*plain[max(n_bound - len(arguments.posonlyargs), 0) :]]
    names += [a.arg for a in arguments.kwonlyargs]
    return _Signature(
        names=tuple(names), required=tuple(needed), takes_any=arguments.kwarg is not None
    )
