"""``paceline serve``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    epilog="\b\nExamples:\n"
    "  paceline serve\n"
    "  paceline serve runs --port 0\n"
    "  paceline serve runs --host 192.168.1.20 --max-upload-mb 100"
)
@click.argument("folder", type=click.Path(), default=".")
@click.option("--host", default="127.0.0.1", show_default=True, help="Who may reach it.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="0: any free one.",
)
@click.option(
    "--max-upload-mb", type=click.IntRange(1), default=20, show_default=True, help="Of a table."
)
def command(folder: str, host: str, port: int, max_upload_mb: int) -> None:
    """Serve the web application for the files of FOLDER.

    Prints the address to open; it carries the token without which nothing can be changed.
    Only this machine can reach it, unless --host says otherwise. Ctrl-C ends it.
    """
    from paceline.web import Settings, serve

    settings = Settings(folder=Path(folder), host=host, max_upload_bytes=max_upload_mb * 1_000_000)
    if not settings.is_local:
        click.echo(
            f"note: other machines can reach {host}; they need the token, which travels unhidden.",
            err=True,
        )
    serve(settings, port=port, say=click.echo)
