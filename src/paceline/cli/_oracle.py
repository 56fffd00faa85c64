"""``paceline oracle``."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click

from paceline.cli._devices import SAMPLES, Devices
from paceline.cli._main import EXIT_NOT_GOOD
from paceline.cli._options import (
    format_option,
    is_given,
    network_options,
    parse_at,
    say_notes,
    strategy_option,
)
from paceline.cli._output import check_writable, print_json
from paceline.errors import InfeasibleError, InvalidInputError, UnknownNameError
from paceline.units import format_seconds

SCHEMA = "paceline/oracle/1"
_LAUNCH_S = 5e-6  # what starting a kernel takes, in orders of magnitude
_SWITCH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@click.command(
    epilog="\b\nExamples:\n"
    "  paceline oracle resnet50 --cluster abci --devices 1..1024 --device-batch 64\n"
    "  paceline oracle gpt2 --cluster p4d --devices 8 --strategy data+tensor --global-batch 64\n"
    "  paceline oracle vgg16 --cluster dgx-1 --devices 8 --strategy data=2,filter=4"
    " --global-batch 64\n"
    "  paceline oracle resnet50 --cluster abci --devices 1..512 --global-batch 4096 --knee 10%"
)
@click.argument("workload", required=False)
@click.option("--cluster", required=True, metavar="NAME|FILE", help="See: paceline list clusters.")
@click.option("--devices", required=True, type=Devices(), help="A..B doubles; A..B/step; lists.")
@strategy_option
@click.option("--global-batch", type=SAMPLES, help="Samples of a step in all.")
@click.option("--device-batch", type=SAMPLES, help="Samples of a step by device.")
@click.option(
    "--knee",
    metavar="PERCENT",
    is_flag=False,
    flag_value="10%",
    help="Show the devices beyond which a doubling gains less [10%].",
)
@click.option("--samples", type=SAMPLES, help="Of an epoch [the dataset's, if known].")
@network_options("A parameter of the workload.")
@click.option("-o", "--output", type=click.Path(), help="Write the table as .csv or .json.")
@format_option
def command(
    workload: str | None,
    cluster: str,
    devices: list[int],
    strategies: tuple[str, ...],
    global_batch: int | None,
    device_batch: int | None,
    knee: str | None,
    samples: int | None,
    output: str | None,
    output_format: str,
    **options: Any,
) -> int:
    """Say what a step of WORKLOAD costs under every strategy, before anyone rents devices.

    WORKLOAD is a name (paceline list workloads) or a .toml of layers. Prints compute,
    communication that is not hidden, time of a step and of an epoch, memory, efficiency against
    one device, and what limits each strategy. Exit code 1: nothing fits.
    """
    from paceline.clusters import load_cluster
    from paceline.oracle import known_samples, survey

    if output and not output.endswith((".csv", ".json")):
        raise InvalidInputError(f"-o must end in .csv or .json, but got {output!r}.")
    check_writable(output)
    _check_batch(global_batch, device_batch)
    least_gain = None if knee is None else parse_percent(knee)
    graph = read_graph(workload, options)
    names, given = parse_strategies(strategies)
    found = survey(
        graph,
        load_cluster(cluster),
        devices,
        strategies=given,
        global_batch=global_batch,
        device_batch=device_batch,
        optimizer=options["optimizer"],
        precision=options["precision"],
        **({"names": names} if names else {}),
    )
    n_samples = samples or known_samples(graph)
    _note_unequal(found.result.cluster)
    _note_short_layers(found.result)
    try:
        found.require_fit()
        code = 0
    except InfeasibleError as error:
        click.echo(f"note: {error}", err=True)
        code = EXIT_NOT_GOOD
    if output:
        _write(found, n_samples, output)
    _say_left_out(found, names)
    _print(found, n_samples, least_gain if code == 0 else None, output, output_format)
    return code


def _say_left_out(found: Any, names: list[str]) -> None:
    """Say why strategies that were asked for by name are not in the tables."""
    left_out: dict[str, list[int]] = {}
    for row, name in enumerate(found.names):
        if name in names and not found.result.is_possible[row]:
            left_out.setdefault(name, []).append(row)
    for name, rows in left_out.items():
        n, why = ", ".join(str(found.n_devices[row]) for row in rows), found.result.why(rows[0])
        say_notes((f"{name} is not possible on {n} devices: {why}.",))


def _note_unequal(cluster: Any) -> None:
    if not cluster.is_even:
        note = (
            f"{cluster.name} has unequal devices: all passes take as long as on the slowest in "
            "use, memory is that of the smallest. `paceline plan` reckons with each."
        )
        say_notes((note,))


def _note_short_layers(result: Any) -> None:
    """Say where layers are shorter than it takes to start them, and nobody said how long."""
    device, rows = result.cluster.device, result.is_possible
    if device.launch_s or device.half_flop or device.kernels or not rows.any():
        return
    passes = (result["forward_s"] + result["backward_s"])[rows]
    n_passes = 2 * len(result.graph.layers) * result.table["micro_batches"][rows]
    longest = float((passes * result.table["pipeline"][rows] / n_passes).max())
    if longest < _LAUNCH_S:
        note = (
            f"layers of {result.graph.name} take {format_seconds(longest)} or less on average "
            f"here, and to start one takes some {format_seconds(_LAUNCH_S)} on most devices, "
            f"which {result.cluster.name} does not state (`launch_s`): real steps are longer."
        )
        say_notes((note,))


def _check_batch(global_batch: int | None, device_batch: int | None) -> None:
    if (global_batch is None) == (device_batch is None):
        raise InvalidInputError(
            "Give either --global-batch (strong scaling) or --device-batch (weak scaling), "
            "not both or neither."
        )


def parse_percent(text: str) -> float:
    """Return the share that a percentage such as ``10%`` stands for."""
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 < value < 100:
        raise InvalidInputError(
            f"--knee must be a percentage between 0 and 100, but got {text!r}. Try: --knee 10%"
        )
    return value / 100


def read_graph(workload: str | None, options: dict[str, Any]) -> Any:
    """Return the layers that are asked about."""
    from paceline.workloads import load_workload

    if (workload is None) == (options["module"] is None):
        raise InvalidInputError("Give either a WORKLOAD or --module FILE:NAME.")
    if options["module"] is not None:
        return _traced(options)
    for name in ("input_shape", "vocabulary"):
        if options[name]:
            option = f"--{name.replace('_', '-')}"
            raise InvalidInputError(f"{option} belongs to --module; a workload takes --at.")
    assert workload is not None  # one of the two is given
    values = {n: read_value(v) for n, v in parse_at(options["at"]).items()}
    if workload.endswith(".toml"):
        from paceline.workloads import load_graph

        if values:
            raise InvalidInputError(
                f"--at belongs to workloads by name, but {workload} is a table of layers. Change "
                "the layers there, and leave --at out."
            )
        return load_graph(workload)
    _settle_optimizer(options, values)
    return load_workload(workload).graph(values)


def _settle_optimizer(options: dict[str, Any], values: dict[str, Any]) -> None:
    """Take the optimizer of ``--at optimizer=…`` where ``--optimizer`` is not given."""
    wanted = values.get("optimizer", options["optimizer"])
    if is_given("optimizer") and wanted != options["optimizer"]:
        raise InvalidInputError(
            f"The optimizer must be given once, but --optimizer is {options['optimizer']!r} and "
            f"--at optimizer is {wanted!r}. Leave one out."
        )
    options["optimizer"] = wanted


def read_value(text: str) -> Any:
    """Return a number where the text is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _traced(options: dict[str, Any]) -> Any:
    from paceline.workloads import trace_file

    file, colon, name = options["module"].rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise InvalidInputError(
            f"--module must be FILE:NAME, but got {options['module']!r}. Try: --module net.py:Net"
        )
    if not options["input_shape"]:
        raise InvalidInputError("--module needs --input-shape, one sample's. Try: 3,224,224")
    shape = [read_value(n) for n in options["input_shape"]]
    if not all(isinstance(n, int) and n > 0 for n in shape):
        raise InvalidInputError(
            "--input-shape must be positive whole numbers, but got "
            f"'{','.join(options['input_shape'])}'. Try: 3,224,224"
        )
    arguments = {n: read_value(v) for n, v in parse_at(options["at"]).items()}
    return trace_file(
        Path(file),
        name,
        tuple(shape),
        arguments=arguments,
        vocabulary=options["vocabulary"],
        option="--at",
    )


def parse_strategies(texts: tuple[str, ...]) -> tuple[list[str], list[Any]]:
    """Return names and whole strategies; all, where neither is given."""
    from paceline.oracle import list_strategies

    for text in texts:
        if not text.strip(", "):
            raise InvalidInputError(
                f"--strategy must name one, but got {text!r}. Try: --strategy data, or leave it "
                "out for all"
            )
    degrees = [text for text in texts if "=" in text]
    names = [n.strip() for text in texts if "=" not in text for n in text.split(",") if n.strip()]
    if degrees and names and is_given("strategies"):
        raise InvalidInputError("--strategy takes either names or degrees, not both.")
    for name in names:
        for part in name.split("+"):
            if name != "all" and part not in list_strategies():
                raise UnknownNameError("strategy", part, ["all", *list_strategies()])
    return _all_among(names), [_strategy(text) for text in degrees]


def _all_among(names: list[str]) -> list[str]:
    """Return the names with all in place of ``all``; none, where all alone are asked for."""
    from paceline.oracle import ALL

    if "all" not in names or set(names) <= {"all", *ALL}:
        return [] if "all" in names else names
    return list(dict.fromkeys(n for name in names for n in (ALL if name == "all" else (name,))))


def _strategy(text: str) -> Any:
    from paceline.scenario import Strategy

    parts: dict[str, Any] = {}
    for pair in text.split(","):
        name, equals, value = (piece.strip() for piece in pair.partition("="))
        if not equals or not name or not value:
            raise InvalidInputError(f"--strategy must be NAME=DEGREE,…, but got {text!r}.")
        if name in parts:
            raise InvalidInputError(
                f"--strategy must name a degree once, but {name!r} comes twice in {text!r}. Leave "
                "one out."
            )
        parts[name] = _switch(value) if name == "recompute" else read_value(value)
    return Strategy.from_dict(parts)


def _switch(text: str) -> bool:
    """Return whether recomputation is asked for."""
    if text.lower() not in _SWITCH:
        raise InvalidInputError(
            f"`recompute` of --strategy must be 1, true or yes, or 0, false or no, but got "
            f"{text!r}. Try: recompute=1"
        )
    return _SWITCH[text.lower()]


def _print(
    found: Any, n_samples: int | None, least_gain: float | None, output: str | None, form: str
) -> None:
    from paceline.oracle import knees
    from paceline.reports import show_knees, show_survey

    if form == "json":
        print_json(_document(found, n_samples, least_gain))
    elif least_gain is not None:
        click.echo(show_knees(found, knees(found, least_gain=least_gain), n_samples))
    elif not output:
        click.echo(show_survey(found, n_samples))


def _document(
    found: Any, n_samples: int | None, least_gain: float | None = None
) -> dict[str, Any]:
    from paceline.oracle import knees

    result = found.result
    document = {
        "schema": SCHEMA,
        "workload": result.graph.name,
        "values": dict(result.graph.values),
        "cluster": result.cluster.name,
        "optimizer": found.optimizer,
        "precision": found.precision,
        "samples": n_samples,
        "scenarios": found.n_scenarios,
        "limits": found.limits,
        "rows": [
            {str(k): _plain(v) for k, v in row.items()}
            for row in found.frame(n_samples).to_dict("records")
        ],
    }
    if least_gain is not None:
        document["knees"] = {
            name: {"n_devices": k.n_devices, "is_reached": k.is_reached, "gain": _plain(k.gain)}
            for name, k in knees(found, least_gain=least_gain).items()
        }
    return document


def _plain(value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def _write(found: Any, n_samples: int | None, output: str) -> None:
    from paceline.dataset import write_text

    if output.endswith(".json"):
        write_text(output, json.dumps(_document(found, n_samples), indent=2) + "\n")
    else:
        write_text(output, found.frame(n_samples).to_csv(index=False))
