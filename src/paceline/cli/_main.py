"""``paceline``: verbs loaded when they are called, so that help is immediate."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from paceline import __version__
from paceline.errors import PacelineError, UnknownNameError

EXIT_NOT_GOOD = 1
EXIT_IMPOSSIBLE = 2

# in the order in which a person uses them
_VERBS = {
    "demo": "Measure LeNet-5 on this machine; fit, compare, explain and report it.",
    "measure": "Run a campaign of measurements; the same command resumes it.",
    "trace": "Measure a training script from outside, unedited.",
    "executors": "Make the environments of frameworks.",
    "import": "Turn a table of measured times into a dataset of ours.",
    "fit": "Fit a readable expression of the time to DATA.",
    "predict": "Predict the time of rows, or of one point.",
    "check": "Exit 1 when a model is off by more than a limit on DATA.",
    "explain": "Say what a fitted expression means.",
    "phases": "Say where the steps of a campaign spend their time, and why workers wait.",
    "compare": "Fit every form and every black box on the same folds.",
    "report": "Show data, model and plan as one HTML page that works offline.",
    "calibrate": "Measure this machine's rates and links: a cluster file.",
    "oracle": "Say what a step costs under every parallel strategy on a cluster.",
    "plan": "Choose how to train a network on a cluster, and say why.",
    "run": "Run a plan for real: predicted beside measured.",
    "serve": "Show all this in a browser: what-if questions, campaigns, plans.",
    "validate": "Replay published numbers.",
    "list": "List forms, spaces, workloads, executors or studies.",
}

_EPILOG = """\b
Examples:
  paceline fit times.csv -o model.json
  paceline explain model.json
  paceline predict model.json --at n_devices=16 --at global_batch=256
  paceline compare times.csv
"""


class LazyGroup(click.Group):
    """A group whose verbs are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in order of use."""
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb."""
        if cmd_name not in _VERBS:
            return None
        module = importlib.import_module(f"paceline.cli._{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest verb for an unknown one."""
        if args and not args[0].startswith("-") and args[0] not in _VERBS:
            raise UnknownNameError("verb", args[0], _VERBS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(_VERBS.items()))


@click.group(
    cls=LazyGroup,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(__version__, prog_name="paceline")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(debug: bool) -> None:
    """Predict, explain and plan the pace of distributed deep-learning training.

    Every output is the next verb's input. Exit code 0: done and good; 1: done and not good;
    2: could not be done.
    """


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    arguments = list(sys.argv[1:] if args is None else args)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        code = command.main(arguments, prog_name="paceline", standalone_mode=False)
        sys.stdout.flush()
    except Exception as error:
        if debug:
            raise
        code = _report(error)
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _report(error: Exception) -> int:
    """Say in one line what went wrong, and return the exit code."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message())
        return EXIT_IMPOSSIBLE
    if isinstance(error, click.Abort):
        click.echo("Interrupted.", err=True)
        return 130
    if isinstance(error, BrokenPipeError):
        # the reader has left; nothing more can be said to it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    click.echo(f"Error: {_one_line(error)}", err=True)
    return EXIT_IMPOSSIBLE


def _one_line(error: Any) -> str:
    if isinstance(error, click.UsageError):
        hint = f" See: {error.ctx.command_path} --help" if error.ctx else ""
        return " ".join(error.format_message().split()) + hint
    if isinstance(error, click.ClickException):
        return " ".join(error.format_message().split())
    if isinstance(error, PacelineError):
        return " ".join(str(error).split())
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror or error}{where}."
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}. This should not happen; --debug shows where."
