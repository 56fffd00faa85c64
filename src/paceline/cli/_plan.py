"""``paceline plan``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from paceline.cli._devices import MOST_DEVICES, SAMPLES
from paceline.cli._main import EXIT_NOT_GOOD
from paceline.cli._options import format_option, network_options, parse_at, strategy_option
from paceline.cli._oracle import parse_strategies, read_graph, read_value
from paceline.cli._output import check_writable, print_json
from paceline.errors import InfeasibleError, InvalidInputError, SchemaError

SCHEMA = "paceline/plan-search/1"
_UNITS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@click.command(
    epilog="\b\nExamples:\n"
    "  paceline plan resnet50 --cluster abci --devices 16 --global-batch 1024 -o plan.json\n"
    "  paceline plan gpt2 --cluster p4d --devices 64 --global-batch 512 --objective cheapest\n"
    "  paceline plan vgg16 --cluster dgx-1 --devices 8 --global-batch 256 --deadline 2h"
    " --objective fewest\n"
    "  paceline plan model.json --space space.toml"
)
@click.argument("workload", required=False)
@click.option("--cluster", metavar="NAME|FILE", help="See: paceline list clusters.")
@click.option(
    "--devices", type=click.IntRange(1, MOST_DEVICES), help="How many there are at most."
)
@click.option("--global-batch", type=SAMPLES, help="Samples of a step in all.")
@click.option(
    "--predictor",
    default="oracle",
    show_default=True,
    metavar="oracle|FILE",
    help="Whose times: the oracle's, or those of a model.json.",
)
@click.option(
    "--objective",
    default="fastest",
    show_default=True,
    metavar="NAME",
    help="fastest, cheapest (device time), or fewest devices in time.",
)
@click.option("--deadline", metavar="TIME", help="Of an epoch: 90, 90s, 15min, 2h, 1d.")
@click.option("--samples", type=SAMPLES, help="Of an epoch [the dataset's, if known].")
@strategy_option
@click.option("--use-all", is_flag=True, help="Use all devices, even where fewer are better.")
@click.option("--unrunnable", is_flag=True, help="Also strategies that no executor runs yet.")
@network_options("A parameter of the workload; of a model.json: one that stays.")
@click.option("--space", type=click.Path(), help="Values to choose from, for a model.json.")
@click.option("--export", type=click.Choice(["script"]), help="Write a script for torchrun too.")
@click.option("-o", "--output", type=click.Path(), help="Write the plan here.")
@format_option
def command(workload: str | None, output: str | None, output_format: str, **options: Any) -> int:
    """Choose how to train WORKLOAD on up to so many devices, and say why.

    Looks at every strategy with all degrees and micro-batches, cuts the best exactly, simulates
    and places them. WORKLOAD is a name or a .toml of layers; or a model.json, whose best
    parameters within --space are found. Exit code 1: nothing fits, or nothing is in time.
    """
    check_writable(output)
    try:
        if workload is not None and workload.endswith(".json"):
            return _plan_parameters(workload, output, output_format, options)
        return _plan_training(workload, output, output_format, options)
    except InfeasibleError as error:
        click.echo(f"note: {' '.join(str(error).split())}", err=True)
        return EXIT_NOT_GOOD


def _plan_training(
    workload: str | None, output: str | None, output_format: str, options: dict[str, Any]
) -> int:
    from paceline.clusters import load_cluster
    from paceline.planners import search_plans
    from paceline.reports import show_plan
    from paceline.scenario import save_plan

    _require(options)
    if options["export"] and not output:
        raise InvalidInputError("--export needs -o PLAN.json: the script is written beside it.")
    graph = read_graph(workload, options)
    names, given = parse_strategies(options["strategies"])
    found = search_plans(
        graph,
        load_cluster(options["cluster"]),
        options["devices"],
        options["global_batch"],
        workload=_workload(workload, graph, options),
        cluster_name=options["cluster"],
        objective=options["objective"],
        deadline_s=None if options["deadline"] is None else parse_duration(options["deadline"]),
        n_samples=options["samples"],
        optimizer=options["optimizer"],
        precision=options["precision"],
        predictor=_predictor(options["predictor"]),
        runnable_only=not options["unrunnable"],
        names=names or None,
        strategies=given,
        use_all=options["use_all"],
    )
    if output:
        save_plan(found.plan, output)
    if output_format == "json":
        print_json(_document(found))
    else:
        click.echo(show_plan(found, options["cluster"]))
    if options["export"]:
        _export(found.plan, Path(output or ""))
    return 0


def _require(options: dict[str, Any]) -> None:
    for name in ("cluster", "devices", "global_batch"):
        if options[name] is None:
            raise InvalidInputError(
                f"A plan needs --{name.replace('_', '-')}. Try: paceline plan resnet50 "
                "--cluster abci --devices 16 --global-batch 1024"
            )
    if options["space"]:
        raise InvalidInputError("--space belongs to a model.json; a workload takes --at.")


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as ``90``, ``15min`` or ``2h``."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", text)
    if match is None or match[2] not in _UNITS or float(match[1]) <= 0:
        raise InvalidInputError(
            f"--deadline must be a positive number with s, min, h or d, but got {text!r}."
        )
    return float(match[1]) * _UNITS[match[2]]


def _workload(workload: str | None, graph: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the workload as a plan keeps it."""
    if options["module"] is None:
        name = workload if workload and workload.endswith(".toml") else graph.name
        return {"name": name, "values": dict(graph.values)}
    file, _, name = options["module"].rpartition(":")
    shape = [int(n) for n in options["input_shape"]]
    sample: dict[str, Any] = {"shape": shape, "n_classes": _n_classes(graph)}
    if options["vocabulary"]:
        sample["vocabulary"] = options["vocabulary"]
    arguments = {n: read_value(v) for n, v in parse_at(options["at"]).items()}
    module = {"file": file, "name": name, "arguments": arguments}
    return {"module": module, "sample": sample, "loss": graph.loss}


def _n_classes(graph: Any) -> int:
    """Return what the last layer before the loss gives."""
    shapes = [layer.output_shape for layer in graph.layers if layer.kind != "loss"]
    return int(shapes[-1][-1]) if shapes[-1] else 1


def _predictor(text: str) -> Any:
    if text == "oracle":
        return None
    from paceline.estimators import load_fit
    from paceline.planners import FitPredictor

    return FitPredictor(load_fit(text))


def _document(found: Any) -> dict[str, Any]:
    from paceline.planners import list_events

    return {
        "schema": SCHEMA,
        "plan": found.plan.to_dict(),
        "front": [dict(row) for row in found.front],
        "schedules": {name: dict(row) for name, row in found.schedules.items()},
        "stage_memory_bytes": list(found.memory_bytes),
        "events": [] if found.run is None else list_events(found.run),
        "scenarios": found.n_scenarios,
        "fitting": found.n_fitting,
        "worked_out": found.n_worked_out,
    }


def _export(plan: Any, output: Path) -> None:
    from paceline.dataset import write_text
    from paceline.planners import export_script

    script, command_line = export_script(plan, output.with_suffix(".py"))
    write_text(output.with_suffix(".py"), script)
    click.echo(f"Run it with: {command_line}", err=True)


def _plan_parameters(
    model: str, output: str | None, output_format: str, options: dict[str, Any]
) -> int:
    import json

    from paceline.dataset import write_text
    from paceline.estimators import load_fit
    from paceline.planners import best_parameters
    from paceline.reports import show_parameters
    from paceline.space import Space

    if not options["space"]:
        raise InvalidInputError(
            "A model.json needs --space, the values to choose from. Try: --space space.toml"
        )
    if not Path(options["space"]).is_file():
        raise SchemaError(options["space"], "must be a file with a space, but there is none.")
    deadline = options["deadline"]
    found = best_parameters(
        load_fit(model),
        Space.from_toml(Path(options["space"])),
        objective=options["objective"],
        deadline_s=None if deadline is None else parse_duration(deadline),
        n_samples=options["samples"],
        fixed={n: read_value(v) for n, v in parse_at(options["at"]).items()},
    )
    if output:
        write_text(output, json.dumps(found.to_dict(), indent=2) + "\n")
    if output_format == "json":
        print_json(found.to_dict())
    else:
        click.echo(show_parameters(found))
    return 0
