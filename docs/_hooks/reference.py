"""The command line and the front door as pages, from the code itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

import paceline
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
        "\n".join(["| verb | |", "|---|---|", *contents]),
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
    yield _options(verb, context)
    if examples := _examples(verb.epilog):
        yield f"```text\n{examples}\n```"
    if isinstance(verb, click.Group):
        for name in verb.list_commands(context):
            below = verb.get_command(context, name)
            yield from _verb(below, click.Context(below, info_name=name, parent=context), "###")


def _options(verb: click.Command, context: click.Context) -> str:
    records = [parameter.get_help_record(context) for parameter in verb.get_params(context)]
    rows = [f"| `{record[0]}` | {_cell(record[1])} |" for record in records if record]
    return "\n".join(["| option | |", "|---|---|", *rows])


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


def python_page() -> str:
    """Return the names of the front door with their signatures and what they are for."""
    parts = [
        "# Python",
        "`import paceline` gives these names and loads nothing heavy before one is used; each\n"
        "package (`paceline.oracle`, `paceline.planners` …) has more of its own, with docstrings.",
    ]
    for name in sorted(n for n in paceline.__all__ if not n.startswith("_")):
        parts += _name(name, getattr(paceline, name))
    return "\n\n".join(parts) + "\n"


def _name(name: str, thing: object) -> Iterator[str]:
    yield f"## `{name}`"
    if callable(thing):
        yield f"```py\n{_signature(name, thing)}\n```"
    yield from _docstring(inspect.getdoc(thing) or "")


def _signature(name: str, thing: object) -> str:
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    shown = f"{name}{signature}".replace("'", "")
    if len(shown) <= 90:
        return shown
    inside = "".join(f"    {parameter},\n" for parameter in _parameters(signature))
    returned = (
        ""
        if signature.return_annotation is signature.empty
        else (f" -> {inspect.formatannotation(signature.return_annotation)}")
    )
    return f"{name}(\n{inside}){returned}".replace("'", "")


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    named_only = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not named_only:
            named_only = True
            yield "*"
        yield str(parameter)


def _docstring(text: str) -> Iterator[str]:
    """Yield the paragraphs before the sections of a numpydoc docstring."""
    words = re.split(r"\n\w[\w ]*\n-{3,}\n", text)[0]
    yield from _prose(words.replace("``", "`"))
