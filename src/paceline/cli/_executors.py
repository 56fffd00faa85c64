"""``paceline executors``."""

from __future__ import annotations

import click


@click.group(name="executors", epilog="\b\nExample:\n  paceline executors install jax")
def command() -> None:
    """Make the environments of frameworks; `paceline list executors` says what is ready."""


@command.command(epilog="\b\nExample:\n  paceline executors install tensorflow")
@click.argument("name")
def install(name: str) -> None:
    """Make the environment of the framework NAME; does nothing when it is there."""
    from paceline.executors import install_executor

    python = install_executor(name, progress=lambda line: click.echo(line, err=True))
    click.echo(f"{name} is ready: {python}")
