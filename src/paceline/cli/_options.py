"""Options that several verbs share."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import click

from paceline.errors import InvalidInputError

Command = Callable[..., Any]


class Names(click.ParamType[list[str]]):
    """A comma-separated list of names."""

    name = "a,b"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        """Split the names."""
        if isinstance(value, list):
            return value
        names = [name.strip() for name in str(value).split(",") if name.strip()]
        if not names:
            option = param.opts[0] if param is not None else "The list"
            raise InvalidInputError(
                f"{option} must name at least one column, but got {value!r}. Name one, or leave "
                "the option out."
            )
        return names


def data_options(*, grouped: bool = True) -> Callable[[Command], Command]:
    """Add the options that say what the columns of DATA are."""
    options = [
        click.option("--time", metavar="COL", help="Column of the time [default: time_s]."),
        click.option("--intrinsic", type=Names(), help="Columns that say what the job is."),
        click.option("--extrinsic", type=Names(), help="Columns that say how it is scaled."),
        click.option("--categorical", type=Names(), help="Columns of numbers that are labels."),
        click.option(
            "--time-unit",
            type=click.Choice(["s", "ms", "us"]),
            help="Unit [default: as the column's name says, else s].",
        ),
        click.option(
            "--throughput", metavar="COL", help="Samples per --time-unit; time = batch / it."
        ),
        click.option(
            "--time-per",
            type=click.Choice(["step", "epoch", "sample"]),
            help="What the time is of; of a .db whose time is per step: convert it.",
        ),
    ]
    if grouped:
        options.append(
            click.option("--group", metavar="COL", help="Rows of a value stay in one fold.")
        )
    return _adding(options)


def feature_options(function: Command) -> Command:
    """Add the options that say which derived columns join the parameters."""
    options = [
        click.option(
            "--features",
            default="auto",
            show_default=True,
            metavar="none|layers|oracle",
            help="FLOP and bytes of the layers, or what the oracle says of a row, join the "
            "parameters; auto: the layers in our own campaigns.",
        ),
        click.option("--workload", metavar="NAME", help="What is trained [default: see DATA]."),
        click.option("--cluster", metavar="NAME|FILE", help="What the oracle's columns are of."),
    ]
    return _adding(options)(function)


def strategy_option(function: Command) -> Command:
    """Add the repeatable ``--strategy``."""
    return click.option(
        "--strategy",
        "strategies",
        multiple=True,
        default=("all",),
        show_default=True,
        help="all; names joined by + and separated by commas; or degrees: data=2,filter=4.",
    )(function)


def network_options(at_help: str) -> Callable[[Command], Command]:
    """Add the options that say how the network is trained, and which one it is."""
    words = "Words, where samples are tokens."
    options: list[Callable[[Command], Command]] = [
        click.option(
            "--optimizer", default="adam", show_default=True, help="sgd, momentum, adam, adamw."
        ),
        click.option(
            "--precision", default="float32", show_default=True, help="One the device has."
        ),
        at_option(at_help),
        click.option(
            "--module", metavar="FILE:NAME", help="Your own network instead of a workload."
        ),
        click.option(
            "--input-shape", type=Names(), metavar="C,H,W", help="Of one sample of --module."
        ),
        click.option("--vocabulary", type=click.IntRange(1), help=words),
    ]
    return _adding(options)


def _adding(options: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Return what adds options so that help shows them in this order."""

    def add(function: Command) -> Command:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def settle_features(options: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords that `feature_options` stand for."""
    useless = {"workload": ("none",), "cluster": ("none", "layers")}
    for name, kinds in useless.items():
        if options[name] is not None and options["features"] in kinds:
            say_notes((f"--{name} does nothing with --features {options['features']}.",))
    return {name: options[name] for name in ("features", "workload", "cluster")}


def read_data(path: str, options: dict[str, Any], *, keep_constant: bool = False) -> Any:
    """Load DATA with the options that were given, and say on stderr what was guessed."""
    from paceline.dataset import load_dataset

    roles = ("intrinsic", "extrinsic", "categorical", "group")
    keywords = ("time", "time_unit", "throughput", "time_per", *roles)
    given = {n: v for n, v in options.items() if n in keywords and v is not None}
    dataset = load_dataset(path, **given, keep_constant=keep_constant)
    say_notes(dataset.notes)
    return dataset


def say_notes(notes: tuple[str, ...]) -> None:
    """Print what a user should know to stderr."""
    for note in notes:
        click.echo(
            textwrap.fill(f"note: {note}", 80, subsequent_indent="      ", break_long_words=False),
            err=True,
        )


def format_option(function: Command) -> Command:
    """Add ``--output-format``."""
    return click.option(
        "--output-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="What is printed to stdout.",
    )(function)


def seed_option(function: Command) -> Command:
    """Add ``--random-state``."""
    return click.option(
        "--random-state",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Seed of all draws.",
    )(function)


def at_option(help: str) -> Callable[[Command], Command]:
    """Add the repeatable ``--at name=value``."""
    return click.option("--at", multiple=True, metavar="NAME=VALUE", help=help)


def parse_at(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return the point that ``--at name=value`` describes."""
    point: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InvalidInputError(
                f"--at must be NAME=VALUE, but got {pair!r}. Try: --at n_devices=16"
            )
        if name.strip() in point:
            raise InvalidInputError(f"--at must name a parameter once, but {name!r} comes twice.")
        point[name.strip()] = value.strip()
    return point


def is_given(*names: str) -> bool:
    """Return whether the user gave one of these options on the command line."""
    context = click.get_current_context()
    command_line = click.core.ParameterSource.COMMANDLINE
    return any(context.get_parameter_source(name) is command_line for name in names)
