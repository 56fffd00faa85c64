"""What goes to the terminal and to files."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from paceline.errors import InvalidInputError

_PATIENCE_S = 1.0


def print_json(data: Any) -> None:
    """Print plain data as JSON to stdout."""
    click.echo(json.dumps(data, indent=2, allow_nan=False))


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int, str], None]]:
    """Yield a function that shows progress with an estimated end, on a terminal's stderr.

    Work that is over within a second shows nothing.
    """
    if not sys.stderr.isatty():
        yield lambda done, total, label: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    start = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None)
    started = False

    def show(done: int, total: int, label: str) -> None:
        nonlocal started
        if not started and time.monotonic() - start > _PATIENCE_S:
            bar.start()
            started = True
        bar.update(task, completed=done, total=total, description=f"{title}: {label}")

    try:
        yield show
    finally:
        if started:
            bar.stop()


def check_writable(path: str | None, *inputs: str | None) -> None:
    """Refuse early a path at which nothing can be written, or that is an input of the command."""
    if path is None:
        return
    target = Path(path)
    for given in inputs:
        if (
            given is not None
            and Path(given).exists()
            and target.resolve() == Path(given).resolve()
        ):
            raise InvalidInputError(
                f"-o must not be a file that the command reads, but both are {path!r}. "
                f"Name another one."
            )
    if target.is_dir():
        raise InvalidInputError(f"-o must name a file, but {path!r} is a folder.")
    if not target.resolve().parent.is_dir():
        raise InvalidInputError(
            f"The folder of a new file must exist, but {str(target.parent)!r} does not."
        )
