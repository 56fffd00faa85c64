"""The command line as a page, from the code itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from paceline.cli._main import command as PACELINE  # noqa: N812 - the root of all verbs


def commands_page() -> str:
    """Return every verb with its arguments, options and examples."""
    context = click.Context(PACELINE, info_name="paceline", **PACELINE.context_settings)
    verbs = {name: PACELINE.get_command(context, name) for name in PACELINE.list_commands(context)}
    contents = [
        f"| [`{name}`](#paceline-{name}) | {_summary(verb)} |" for name, verb in verbs.items()
    ]
    parts = [
        "# Commands",
        "Made from the code when this site was built; `paceline VERB --help` says the same.",
        *_prose(PACELINE.help),
        "\n".join(["| verb | what it does |", "|---|---|", *contents]),
        _options(PACELINE, context),
    ]
    for name, verb in verbs.items():
        parts += _verb(verb, click.Context(verb, info_name=name, parent=context), "##")
    return "\n\n".join(parts) + "\n"


def _verb(verb: click.Command, context: click.Context, level: str) -> Iterator[str]:
    yield f"{level} {context.command_path}"
    usage = " ".join(verb.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {usage}\n```"
    yield from _prose(verb.help)
    if options := _options(verb, context):
        yield options
    if examples := _examples(verb.epilog):
        yield f"```text\n{examples}\n```"
    if isinstance(verb, click.Group):
        for name in verb.list_commands(context):
            below = verb.get_command(context, name)
            yield from _verb(below, click.Context(below, info_name=name, parent=context), "###")


def _options(verb: click.Command, context: click.Context) -> str:
    records = [parameter.get_help_record(context) for parameter in verb.params]
    rows = [f"| `{name}` | {_cell(words)} |" for name, words in filter(None, records) if words]
    return "\n".join(["| option | meaning |", "|---|---|", *rows]) if rows else ""


def _summary(verb: click.Command) -> str:
    return _cell(verb.get_short_help_str(limit=200))


def _prose(text: str | None) -> list[str]:
    paragraphs = inspect.cleandoc(text or "").replace("\b", "").split("\n\n")
    return [_plain(" ".join(paragraph.split())) for paragraph in paragraphs if paragraph.strip()]


def _examples(epilog: str | None) -> str:
    lines = inspect.cleandoc((epilog or "").replace("\b", "")).split("\n")
    return "\n".join(line.strip() for line in lines if not re.match(r"\s*Examples?:|$", line))


def _plain(text: str) -> str:
    """Return words that Markdown shows as they are, code between backticks aside."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", p) for p in pieces)


def _cell(text: str) -> str:
    return _plain(" ".join(text.split())).replace("|", "\\|")
