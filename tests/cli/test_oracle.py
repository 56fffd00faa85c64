"""``paceline oracle``: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from paceline.clusters import DeviceGroup, load_cluster, save_cluster
from paceline.workloads import load_workload, save_graph

Run = Callable[..., Any]
SMALL = ("resnet18", "--at", "image_size=64", "--at", "filters=16", "--cluster", "abci")


def test_a_table_for_every_number_of_devices_reads_at_80_columns(run: Run) -> None:
    done = run("oracle", *SMALL, "--devices", "1..1024", "--device-batch", "64")
    assert done.code == 0 and done.err == ""
    assert max(map(len, done.out.splitlines())) <= 80
    for n in (1, 2, 64, 1024):
        assert f"{n} device{'s' if n > 1 else ''}, {64 * n} samples a step" in done.out
    marks = [line for line in done.out.splitlines() if line.startswith("* ")]
    assert len(marks) == 11  # the fastest of each number of devices
    assert "at most 16: layer 'stem.conv' (conv) has 16 filters" in done.out
    assert "1281167 samples an epoch" in " ".join(done.out.split())


def test_names_choose_strategies_and_hybrids(run: Run) -> None:
    names = "data,data+filter,zero3"
    done = run(
        "oracle", *SMALL, "--devices", "8", "--global-batch", "64", "--strategy", names,
        "--output-format", "json",
    )  # fmt: skip
    document = json.loads(done.out)
    assert document["schema"] == "paceline/oracle/1"
    assert [row["strategy"] for row in document["rows"]] == names.split(",")
    row = document["rows"][0]
    assert row["n_devices"] == 8 and row["fits"] is True
    assert row["step_s"] == pytest.approx(
        row["compute_s"] + row["bubble_s"] + row["communication_s"]
    )
    assert row["epoch_s"] == pytest.approx(-(-1281167 // 64) * row["step_s"])


def test_degrees_are_taken_as_they_are(run: Run) -> None:
    done = run(
        "oracle", *SMALL, "--devices", "8", "--global-batch", "64",
        "--strategy", "data=2,pipeline=4,micro_batches=8,schedule=gpipe",
        "--strategy", "data=4,filter=2,recompute=1", "--output-format", "json",
    )  # fmt: skip
    one, other = json.loads(done.out)["rows"]
    assert (one["data"], one["pipeline"], one["schedule"]) == (2, 4, "gpipe")
    assert (other["filter"], other["recompute"]) == (2, True)


@pytest.mark.parametrize(
    ("word", "wanted"),
    [("1", True), ("True", True), ("yes", True), ("0", False), ("false", False), ("NO", False)],
)
def test_recomputation_is_on_or_off_in_words(word: str, wanted: bool) -> None:
    from paceline.cli._oracle import parse_strategies

    _, (strategy,) = parse_strategies((f"data=2,recompute={word}",))
    assert strategy.recompute is wanted


def test_unequal_devices_are_noted_once_and_the_smallest_must_suffice(
    run: Run, tmp_path: Path
) -> None:
    from dataclasses import replace

    path = tmp_path / "mixed.toml"
    groups = (DeviceGroup(count=2), DeviceGroup(count=2, speed=0.5, memory_bytes=2**20))
    save_cluster(replace(load_cluster("abci"), devices=groups, n_devices=4), path)
    common = ("--cluster", path, "--device-batch", "8", "--strategy", "data")
    done = run("oracle", "mlp", *common, "--devices", "2,4")
    assert done.code == 0 and done.err.count("unequal devices") == 1
    note = " ".join(done.err.split())
    assert "unequal devices" in note and "the slowest in use" in note and "`paceline plan`" in note
    assert "in the smallest device in use." in " ".join(done.out.split())
    assert next(line.count("!") for line in done.out.splitlines() if "data 4" in line) == 1


def test_the_knee_is_shown_with_device_hours_and_money(run: Run, tmp_path: Path) -> None:
    from dataclasses import replace

    path = tmp_path / "priced.toml"
    save_cluster(replace(load_cluster("abci"), price_per_device_hour=1.5), path)
    small = [*SMALL[:-1], path]
    common = ("--devices", "1..256", "--global-batch", "256", "--strategy", "data")
    done = run("oracle", *small, *common, "--knee", "20%")
    assert done.code == 0
    assert "less than 20 %" in " ".join(done.out.split())
    header, best, *_ = done.out.splitlines()[-3:]
    assert header.split()[-3:] == ["epoch", "device-h", "USD"]
    assert best.startswith("best")
    plain = run("oracle", *small, *common, "--knee")
    assert "less than 10 %" in " ".join(plain.out.split())
    data = json.loads(run("oracle", *small, *common, "--knee", "--output-format", "json").out)
    assert data["knees"]["data"]["is_reached"]


def test_a_knee_needs_several_numbers_of_devices(run: Run) -> None:
    done = run("oracle", *SMALL, "--devices", "8", "--global-batch", "64", "--knee")
    assert done.code == 2
    assert "got 8 alone. Try: --devices 1..8" in " ".join(done.err.split())


def test_what_is_asked_for_and_impossible_is_said(run: Run) -> None:
    common = ("--devices", "8", "--global-batch", "36", "--output-format", "json")
    done = run("oracle", *SMALL, *common, "--strategy", "data,filter")
    note = " ".join(done.err.split())
    assert "data is not possible on 8 devices: `global_batch` must be a multiple of 8" in note
    more = json.loads(run("oracle", *SMALL, *common, "--strategy", "zero3+recompute,all").out)
    assert {"zero3+recompute", "filter"} <= {row["strategy"] for row in more["rows"]}


def test_layers_shorter_than_a_launch_are_noted(run: Run) -> None:
    common = ("--cluster", "dgx-h100", "--devices", "1")
    small = run("oracle", "lenet5", *common, "--global-batch", "32")
    assert small.code == 0 and "(`launch_s`): real steps are longer" in " ".join(small.err.split())
    assert run("oracle", "resnet50", *common, "--global-batch", "64").err == ""


def test_the_optimizer_of_at_counts_and_is_recorded(run: Run) -> None:
    common = ("--devices", "1", "--global-batch", "8", "--output-format", "json")
    at = json.loads(run("oracle", *SMALL, *common, "--at", "optimizer=sgd").out)
    assert (at["optimizer"], at["precision"]) == ("sgd", "float32")
    given = json.loads(run("oracle", *SMALL, *common, "--optimizer", "sgd").out)
    assert at["rows"][0]["memory_bytes"] == given["rows"][0]["memory_bytes"]
    twice = run("oracle", *SMALL, *common, "--at", "optimizer=sgd", "--optimizer", "adam")
    assert twice.code == 2 and "must be given once" in " ".join(twice.err.split())


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_the_table_is_written(run: Run, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    common = ("--devices", "2,4", "--device-batch", "8", "--strategy", "data,filter")
    done = run("oracle", *SMALL, *common, "-o", path, "--samples", "1000")
    assert done.code == 0 and done.out == ""
    if ending == "csv":
        table = pd.read_csv(path)
    else:
        table = pd.DataFrame(json.loads(path.read_text())["rows"])
    assert table["strategy"].tolist() == ["data", "filter"] * 2
    assert table["n_devices"].tolist() == [2, 2, 4, 4]
    assert {"step_s", "epoch_s", "memory_bytes", "bottleneck", "efficiency"} <= set(table)


def test_a_network_may_come_from_a_file_of_layers(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "net.toml"
    save_graph(load_workload("mlp").graph(), path)
    common = ("--cluster", "dgx-1", "--devices", "2", "--device-batch", "8", "--strategy", "data")
    from_file, by_name = (
        json.loads(run("oracle", name, *common, "--output-format", "json").out)["rows"]
        for name in (path, "mlp")
    )
    assert from_file[0]["step_s"] == pytest.approx(by_name[0]["step_s"])


MODULE = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self, width=8):
        super().__init__(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 2))

class Wide(Net):
    def __init__(self, width):
        super().__init__(width)

class Data(nn.Module):
    def forward(self, x):
        return x if x.sum().item() > 0 else -x

def broken():
    raise RuntimeError("out of ideas")

def number():
    return 7
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(MODULE)
    return path


MODULE_RUN = ("--cluster", "dgx-1", "--devices", "2", "--device-batch", "8", "--strategy", "data")


def test_a_module_of_ones_own_is_traced(run: Run, module: Path) -> None:
    pytest.importorskip("torch")
    done = run(
        "oracle", "--module", f"{module}:Net", "--input-shape", "4", "--at", "width=16",
        *MODULE_RUN, "--output-format", "json",
    )  # fmt: skip
    (row,) = json.loads(done.out)["rows"]
    assert row["weights_bytes"] == 4 * (4 * 16 + 16 + 16 * 2 + 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("{}:Data", "--input-shape", "4"), "operation"),
        (("{}:broken", "--input-shape", "4"), "RuntimeError: out of ideas"),
        (("{}:number", "--input-shape", "4"), "must give a torch module, but gave a int"),
        (("{}:Ne", "--input-shape", "4"), "Did you mean 'Net'"),
        (("{}:Net",), "--module needs --input-shape"),
        (("{}:Net", "--input-shape", "4,x"), "positive whole numbers"),
        (("{}:Net", "--input-shape", "0"), "whole numbers, but got '0'. Try: 3,224,224"),
        (("{}:Wide", "--input-shape", "4"), "it needs `width` too: it is given none, it takes "),
        (("{}:Wide", "--input-shape", "4"), "takes width. Give it: --at width=VALUE"),
        (("{}:Wide", "--input-shape", "4", "--at", "w=1"), "it does not take `w`"),
        (("{}", "--input-shape", "4"), "must be FILE:NAME"),
        (("nothing.py:Net", "--input-shape", "4"), "must name a readable Python file"),
    ],
)
def test_modules_that_cannot_be_traced_say_why(
    run: Run, module: Path, options: tuple[str, ...], words: str
) -> None:
    pytest.importorskip("torch")
    done = run("oracle", "--module", *(o.format(module) for o in options), *MODULE_RUN)
    assert done.code == 2 and done.out == ""
    assert words in done.err and len(done.err.splitlines()) == 1


def test_nothing_that_fits_is_exit_1_with_what_is_short(run: Run) -> None:
    done = run(
        "oracle", "llama-7b", "--cluster", "thesis-rtx2080", "--devices", "2",
        "--global-batch", "2", "--strategy", "data,zero3",
    )  # fmt: skip
    assert done.code == 1
    assert "No strategy fits in the" in done.err and "GiB more memory than" in done.err
    assert "zero3 2" in done.out and "!" in done.out


def cluster_file(tmp_path: Path, old: str, new: str) -> str:
    path = tmp_path / "broken.toml"
    save_cluster(load_cluster("abci"), path)
    lines = path.read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith(old))
    lines[place] = new
    path.write_text("\n".join(lines) + "\n")
    return str(path)


GOOD = {"--cluster": "abci", "--devices": "4", "--global-batch": "64", "--strategy": "data"}


@pytest.mark.parametrize(
    ("workload", "changes", "words"),
    [
        ("resnet5", {}, "Did you mean 'resnet50'"),
        ("nothing.toml", {}, "nothing.toml"),
        (None, {}, "either a WORKLOAD or --module"),
        ("mlp", {"--cluster": "abc"}, "Did you mean 'abci'"),
        ("mlp", {"--cluster": "nothing.toml"}, "nothing.toml"),
        ("mlp", {"--strategy": "tenso"}, "Did you mean 'tensor'"),
        ("mlp", {"--strategy": "data=3,filter=2"}, "(4), but got 3 * 2 = 6"),
        ("mlp", {"--strategy": "data=x"}, "`data` must be a positive whole number"),
        ("mlp", {"--strategy": "data=2,=2"}, "NAME=DEGREE"),
        ("mlp", {"--strategy": "dat=4"}, "Did you mean 'data'"),
        ("mlp", {"--strategy": "data=2,data=2"}, "'data' comes twice"),
        ("mlp", {"--strategy": f"data=4,micro_batches={10**21}"}, "must be at most 1099511627776"),
        ("mlp", {"--strategy": ""}, "must name one, but got ''. Try: --strategy data"),
        ("mlp", {"--strategy": "data=4,recompute=maybe"}, "1, true or yes, or 0, false or no"),
        ("mlp", {"--strategy": "data=4,recompute=off"}, "but got 'off'"),
        ("mlp", {"--strategy": "data+zero3"}, "divides by `data` twice. Take: data or zero3"),
        ("mlp", {"--global-batch": 10**21}, "range 1<=x<=1099511627776"),
        ("mlp", {"--global-batch": None, "--device-batch": 10**21}, "1<=x<=1099511627776"),
        ("mlp", {"--devices": "2097152"}, "--devices must be at most 1048576, but got '2097152'"),
        ("mlp", {"--devices": "1..2097152"}, "must be at most 1048576, but got '1..2097152'"),
        ("mlp", {"--cluster": "thesis-rtx2080"}, "(3), but one needs 4. Try: --devices 1..3"),
        ("mlp", {"--global-batch": "66"}, "multiple of 4 "),
        ("mlp", {"--global-batch": "66"}, "but is 66: take 64 or 68."),
        ("mlp", {"--global-batch": "2"}, "4 devices share 2 samples"),
        ("mlp", {"--device-batch": "8"}, "either --global-batch"),
        ("mlp", {"--global-batch": None}, "either --global-batch"),
        ("resnet18", {"--strategy": "tensor"}, "layer 'stem.conv' (conv)"),
        ("lenet5", {"--strategy": "filter", "--devices": "64"}, "has 8 filters"),
        ("mlp", {"--devices": "0"}, "--devices must be positive"),
        ("mlp", {"--devices": "8..2"}, "--devices must be positive"),
        ("mlp", {"--devices": "1..x"}, "--devices must be positive"),
        ("mlp", {"--devices": "7", "--strategy": "data+filter"}, "none has for 7"),
        ("mlp", {"--optimizer": "adamz"}, "Did you mean 'adam"),
        ("mlp", {"--precision": "float8"}, "`precision` must be one that"),
        ("mlp", {"--at": "widt=3"}, "No parameter is called 'widt'"),
        ("mlp", {"--at": "width"}, "--at must be NAME=VALUE"),
        ("mlp", {"--knee": "0"}, "--knee must be a percentage"),
        ("mlp", {"--input-shape": "4"}, "--input-shape belongs to --module"),
        ("mlp", {"-o": "rows.txt"}, "-o must end in .csv or .json"),
        ("mlp", {"-o": "nowhere/rows.csv"}, "folder of a new file must exist"),
    ],
)
def test_bad_questions_are_refused_in_one_line(
    run: Run, workload: str | None, changes: dict[str, str | None], words: str
) -> None:
    options = {name: value for name, value in (GOOD | changes).items() if value is not None}
    arguments = [part for pair in options.items() for part in pair]
    done = run("oracle", *([] if workload is None else [workload]), *arguments)
    assert done.code == 2 and done.out == ""
    assert words in done.err and len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [("memory_", "", "missing"), ("memory_", "memory_gb = -16", "must be positive")],
)
def test_a_cluster_file_with_a_bad_figure_names_file_and_field(
    run: Run, tmp_path: Path, old: str, new: str, words: str
) -> None:
    path = cluster_file(tmp_path, old, new)
    done = run("oracle", "mlp", "--cluster", path, "--devices", "2", "--device-batch", "8")
    assert done.code == 2
    assert "broken.toml" in done.err and "memory_" in done.err


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1..8", [1, 2, 4, 8]),
        ("3..20", [3, 6, 12]),
        ("8..64/16", [8, 24, 40, 56]),
        ("4,1,2,2", [1, 2, 4]),
        ("1..4,6", [1, 2, 4, 6]),
    ],
)
def test_devices_are_ranges_that_double_or_step_or_lists(text: str, wanted: list[int]) -> None:
    from paceline.cli._devices import Devices

    assert Devices().convert(text, None, None) == wanted


def test_strategies_and_clusters_are_listed(run: Run) -> None:
    assert "halo" in run("list", "strategies").out
    assert "abci" in run("list", "clusters").out
