"""``paceline plan``: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paceline.clusters import DeviceGroup, load_cluster, save_cluster
from paceline.planners import export_script
from paceline.scenario import Strategy, load_plan

Run = Callable[..., Any]
SMALL = ("resnet18", "--at", "image_size=64", "--at", "filters=16", "--cluster", "abci")
FOUR = (*SMALL, "--devices", "4", "--global-batch", "64")


def test_a_plan_reads_at_80_columns_and_is_written(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    done = run("plan", *FOUR, "-o", path)
    assert done.code == 0 and done.err == ""
    assert max(map(len, done.out.splitlines())) <= 80
    for words in ("resnet18 on", "Why:", "runner-up", "step, predicted", "Nothing beats these"):
        assert words in done.out
    plan = load_plan(path)
    assert plan.cluster == "abci" and plan.global_batch == 64
    assert plan.workload["values"]["filters"] == 16


def test_a_pipeline_shows_its_stages_its_passes_and_other_schedules(run: Run) -> None:
    done = run("plan", *FOUR, "--strategy", "pipeline=4,micro_batches=4")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("0 F0") for line in lines)
    assert any(line.startswith("3 ....") for line in lines)
    assert "unlocked (late gradients)" in done.out and "gpipe" in done.out


def test_json_holds_the_plan_the_front_and_every_pass(run: Run) -> None:
    done = run(
        "plan", *FOUR, "--strategy", "data+pipeline", "--output-format", "json",
    )  # fmt: skip
    document = json.loads(done.out)
    assert document["schema"] == "paceline/plan-search/1"
    assert document["plan"]["schema"] == "paceline/plan/1"
    strategy = document["plan"]["strategy"]
    assert len(document["events"]) == 2 * strategy["pipeline"] * strategy["micro_batches"]
    assert {row["n_devices"] for row in document["front"]} == {4}
    assert document["scenarios"] >= document["fitting"] >= 1


def test_objectives_and_deadlines(run: Run) -> None:
    common = ("plan", *SMALL, "--devices", "8", "--global-batch", "256", "--output-format", "json")
    fastest = json.loads(run(*common).out)["plan"]
    hours = 2.5 * fastest["predicted"]["epoch_s"] / 3600
    done = run(*common, "--objective", "fewest", "--deadline", f"{hours:.6f}h")
    fewest = json.loads(done.out)["plan"]
    assert fewest["predicted"]["epoch_s"] <= hours * 3600
    degrees = ("data", "pipeline", "filter", "channel", "spatial")
    devices = [int(np.prod([p["strategy"][d] for d in degrees])) for p in (fewest, fastest)]
    assert devices[0] < devices[1]


def test_the_price_has_the_clusters_currency(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "priced.toml"
    priced = replace(load_cluster("abci"), price_per_device_hour=1.5, currency="EUR")
    save_cluster(priced, path)
    done = run("plan", *SMALL[:-1], path, "--devices", "4", "--global-batch", "64",
               "--objective", "cheapest")  # fmt: skip
    (price,) = [line for line in done.out.splitlines() if line.startswith("price of an epoch")]
    assert price.endswith(" EUR")
    assert "payload of exchanges" in done.out and "sent by a device" not in done.out
    assert "more device time." in " ".join(done.out.split())


def test_nothing_in_time_or_in_memory_is_exit_code_1(run: Run, tmp_path: Path) -> None:
    late = run("plan", *FOUR, "--deadline", "1s")
    assert late.code == 1 and late.out == ""
    assert "must take at most 1 s, but the fastest plan" in late.err
    path, abci = tmp_path / "small.toml", load_cluster("abci")
    save_cluster(replace(abci, device=replace(abci.device, memory_bytes=2e6)), path)
    full = run("plan", *SMALL[:-1], path, "--devices", "4", "--global-batch", "64",
               "--strategy", "pipeline")  # fmt: skip
    assert full.code == 1 and "on stage" in full.err and "GiB more than" in full.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--objective", "fastet"), "Did you mean 'fastest'?"),
        (("--objective", "fewest"), "needs a deadline"),
        (("--deadline", "soon"), "with s, min, h or d, but got 'soon'"),
        (("--strategy", "pipeline=4,micro_batches=3"), "must be a multiple of 3"),
        (("--strategy", "data=8"), "at most 4 devices"),
        (("--strategy", "data+zero3"), "divides by `data` twice. Take: data or zero3"),
        (("--strategy", "data+zero3", "--devices", "2"), "divides by `data` twice"),
        (("--strategy", ""), "--strategy must name one"),
        (("--devices", "2097152"), "range 1<=x<=1048576"),
        (("--global-batch", "1" + 21 * "0"), "range 1<=x<=1099511627776"),
        (("--strategy", "tensor+pipeline"), "--unrunnable"),
        (("--strategy", "pipelin"), "Did you mean 'pipeline'?"),
        (("--space", "s.toml"), "--space belongs to a model.json"),
        (("--export", "script"), "--export needs -o"),
        (("--predictor", "nowhere.json"), "nowhere.json"),
        (("-o", "no/such/folder/plan.json"), "must exist"),
    ],
)
def test_mistakes_are_one_line(run: Run, options: tuple[str, ...], words: str) -> None:
    done = run("plan", *FOUR, *options)
    assert done.code == 2 and done.out == ""
    assert words in done.err and len(done.err.splitlines()) == 1


@pytest.mark.parametrize("missing", ["--cluster", "--devices", "--global-batch"])
def test_what_is_missing_is_named(run: Run, missing: str) -> None:
    given = {"--cluster": "abci", "--devices": "4", "--global-batch": "64"}
    options = [x for name, value in given.items() if name != missing for x in (name, value)]
    done = run("plan", "lenet5", *options)
    assert done.code == 2 and f"needs {missing}" in done.err


def test_more_stages_than_layers_are_refused(run: Run) -> None:
    done = run(
        "plan", "lenet5", "--cluster", "abci", "--devices", "16", "--global-batch", "64",
        "--strategy", "pipeline=16,micro_batches=4",
    )  # fmt: skip
    assert done.code == 2 and "16 pieces" in done.err


def test_what_workers_do_not_run_is_planned_when_told(run: Run) -> None:
    done = run(
        "plan", "gpt", "--cluster", "abci", "--devices", "4", "--global-batch", "16",
        "--strategy", "tensor+pipeline", "--unrunnable",
    )  # fmt: skip
    assert done.code == 0 and "tensor 2" in done.out


def test_unequal_devices_get_unequal_shares(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mixed.toml"
    groups = (DeviceGroup(count=1), DeviceGroup(count=1, speed=0.5))
    save_cluster(replace(load_cluster("dgx-1"), devices=groups, n_devices=2), path)
    done = run("plan", "resnet50", "--cluster", path, "--devices", "2", "--global-batch", "96",
               "--strategy", "data", "-o", tmp_path / "plan.json")  # fmt: skip
    assert done.code == 0 and "Samples of every replica" in done.out
    first, second = load_plan(tmp_path / "plan.json").replica_batches
    assert first + second == 96 and 1.8 < first / second < 2.2


def test_your_own_module_is_planned(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "net.py"
    file.write_text(
        "from torch import nn\n"
        "def make(width=64):\n"
        "    layers = [nn.Linear(32, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),\n"
        "              nn.Linear(width, 10)]\n"
        "    return nn.Sequential(*layers)\n"
    )
    done = run(
        "plan", "--module", f"{file}:make", "--input-shape", "32", "--at", "width=128",
        "--cluster", "abci", "--devices", "2", "--global-batch", "64",
        "--strategy", "pipeline", "-o", tmp_path / "plan.json",
    )  # fmt: skip
    assert done.code == 0, done.err
    workload = load_plan(tmp_path / "plan.json").workload
    assert workload["module"] == {
        "file": str(file), "name": "make", "arguments": {"width": 128},
    }  # fmt: skip
    assert workload["sample"] == {"shape": [32], "n_classes": 10}
    script, _ = export_script(load_plan(tmp_path / "plan.json"))
    compile(script, "plan.py", "exec")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a step of 2 ms + 0.1 ms a sample and device + 3 ms a device more than one."""
    from paceline.cli import main

    folder = tmp_path_factory.mktemp("planted")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        [(n, b) for n in (1, 2, 4, 8) for b in (16, 32, 64, 128, 256)],
        columns=["n_devices", "global_batch"],
    )
    each = 1e-4 * rows["global_batch"] / rows["n_devices"]
    rows["time_s"] = (2e-3 + each + 3e-3 * (rows["n_devices"] - 1)) * rng.normal(
        1, 1e-3, len(rows)
    )
    rows.to_csv(folder / "times.csv", index=False)
    with pytest.raises(SystemExit) as stopped:
        main(
            ["fit", str(folder / "times.csv"), "-o", str(folder / "model.json"), "--form",
             "posynomial", "--time-per", "step"]
        )  # fmt: skip
    assert stopped.value.code == 0
    (folder / "space.toml").write_text(
        'schema = "paceline/space/1"\nname = "choices"\n'
        '[[parameters]]\nname = "n_devices"\nrole = "extrinsic"\nkind = "numeric"\n'
        "values = [1, 2, 4, 8, 16]\n"
        '[[parameters]]\nname = "global_batch"\nrole = "extrinsic"\nkind = "numeric"\n'
        "values = [16, 64, 256]\n"
    )
    return folder


def test_a_fitted_model_alone_chooses_parameters(run: Run, planted: Path) -> None:
    done = run(
        "plan", planted / "model.json", "--space", planted / "space.toml",
        "--output-format", "json",
    )  # fmt: skip
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["schema"] == "paceline/parameters/1"
    n, b = np.meshgrid([1, 2, 4, 8], [16, 64, 256])
    each = (2e-3 + 1e-4 * b / n + 3e-3 * (n - 1)) / b
    best = np.unravel_index(each.argmin(), each.shape)
    assert document["values"] == {"n_devices": n[best], "global_batch": b[best]}
    assert document["per_sample_s"] == pytest.approx(each.min(), rel=0.05)
    notes = " ".join(document["notes"])
    assert "n_devices 16 left out" in notes
    assert "global_batch is at the largest value measured (256): more may be better" in notes


def test_parameters_read_at_80_columns_and_keep_what_is_fixed(run: Run, planted: Path) -> None:
    common = ("plan", planted / "model.json", "--space", planted / "space.toml")
    done = run(*common, "--at", "global_batch=64")
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    assert "global_batch" in done.out and "64" in done.out and "Next best" in done.out
    late = run(*common, "--deadline", "1s", "--samples", "1000000")
    assert late.code == 1 and "the fastest of" in late.err
    cheap = json.loads(run(*common, "--objective", "cheapest", "--output-format", "json").out)
    assert cheap["values"]["n_devices"] == 1


def test_a_model_in_the_place_of_the_oracle(run: Run, planted: Path) -> None:
    done = run("plan", *FOUR, "--predictor", planted / "model.json", "--strategy",
               "serial,data", "--output-format", "json")  # fmt: skip
    assert done.code == 0, done.err
    plan = json.loads(done.out)["plan"]
    expected = min(2e-3 + 1e-4 * 64 / n + 3e-3 * (n - 1) for n in (1, 2, 4))
    assert plan["predicted"]["step_s"] == pytest.approx(expected, rel=0.05)
    assert plan["predicted"]["oracle_step_s"] > 0
    assert not any("extrapolates" in reason for reason in plan["reasons"])
    asked = ("--devices", "16", "--global-batch", "4096", "--strategy", "data=16")
    wide = run("plan", *SMALL, *asked, "--predictor", planted / "model.json",
               "--output-format", "json")  # fmt: skip
    reasons = json.loads(wide.out)["plan"]["reasons"]
    assert any("The model extrapolates: n_devices 16" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "needs --space"),
        (("--space", "nowhere.toml"), "there is none"),
        (("--space", "SPACE", "--objective", "fewest"), "needs a deadline"),
        (("--space", "SPACE", "--deadline", "1h"), "--samples"),
        (("--space", "SPACE", "--at", "n_device=2"), "Did you mean 'n_devices'?"),
    ],
)
def test_mistakes_with_a_model(
    run: Run, planted: Path, options: tuple[str, ...], words: str
) -> None:
    given = [str(planted / "space.toml") if o == "SPACE" else o for o in options]
    done = run("plan", planted / "model.json", *given)
    assert done.code == 2 and words in done.err and len(done.err.splitlines()) == 1


def test_the_command_of_a_script_names_nodes_where_there_are_many(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    done = run("plan", *SMALL, "--devices", "32", "--global-batch", "256", "--strategy", "data=32",
               "-o", path, "--export", "script")  # fmt: skip
    assert "torchrun --nnodes 4 --nproc-per-node 8" in done.err
    assert (tmp_path / "plan.py").is_file()
    plan = replace(
        load_plan(path),
        strategy=Strategy(data=16, filter=2),
        replica_batches=(16,) * 16,
        placement=tuple((2 * i, 2 * i + 1) for i in range(16)),
    )
    with pytest.raises(ValueError, match="paceline run"):
        export_script(plan)
