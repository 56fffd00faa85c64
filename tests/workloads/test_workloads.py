"""Workloads by name: published sizes, values, defaults, and what a job needs."""

import itertools
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paceline.errors import InfeasibleError, InvalidInputError, UnknownNameError
from paceline.space import load_space
from paceline.workloads import Layer, list_workloads, load_workload, totals


def sums(name: str, **values: Any) -> dict[str, int]:
    return totals(load_workload(name).network(values))


@pytest.mark.parametrize(
    ("name", "n_parameters", "giga_multiply_adds"),
    [("resnet18", 11_689_512, 1.81), ("resnet50", 25_557_032, 4.09)],
)
def test_resnets_have_their_published_size(
    name: str, n_parameters: int, giga_multiply_adds: float
) -> None:
    """Parameters and multiply-adds as torchvision prints them."""
    found = sums(name)
    assert found["n_parameters"] == n_parameters
    assert found["forward_flop"] / 2e9 == pytest.approx(giga_multiply_adds, abs=0.005)


@pytest.mark.parametrize(
    ("name", "mega_parameters", "giga_flop_96", "giga_flop_128"),
    [("resattnet18", 33.9, 26.6, 63.2), ("resattnet34", 64.2, 45.7, 108.5)],
)
def test_resattnets_have_the_size_of_the_reference(
    name: str, mega_parameters: float, giga_flop_96: float, giga_flop_128: float
) -> None:
    assert round(sums(name)["n_parameters"] / 1e6, 1) == mega_parameters
    assert round(sums(name)["forward_flop"] / 1e9, 1) == giga_flop_96
    assert round(sums(name, volume=128)["forward_flop"] / 1e9, 1) == giga_flop_128


@pytest.mark.parametrize(
    ("name", "early_flop", "late_flop"), [("resattnet18", 0.64, 0.16), ("resattnet34", 0.51, 0.24)]
)
def test_resattnets_are_as_uneven_as_the_reference_says(
    name: str, early_flop: float, late_flop: float
) -> None:
    layers = load_workload(name).layers({"volume": 128})
    early = [x for x in layers if x.name.startswith(("stem", "stage1"))]
    late = [x for x in layers if x.name.startswith(("stage3", "stage4", "attention"))]

    def share(part: list[Layer], field: str) -> float:
        return sum(getattr(x, field) for x in part) / sum(getattr(x, field) for x in layers)

    assert share(early, "forward_flop") == pytest.approx(early_flop, abs=0.005)
    assert share(late, "forward_flop") == pytest.approx(late_flop, abs=0.005)
    assert share(early, "n_parameters") < 0.015
    assert share(late, "n_parameters") == pytest.approx(0.94, abs=0.005)
    after_pool = next(x for x in layers if x.name == "stem.pool")
    assert after_pool.activation_bytes == 8 * 2**20


def test_gpt_has_the_size_of_gpt2_and_its_own_output_map() -> None:
    gpt2 = {"layers": 12, "width": 768, "heads": 12, "length": 1024, "vocabulary": 50257}
    assert sums("gpt", **gpt2)["n_parameters"] - 50257 * 768 == 124_439_808


def test_lenet5_of_1998_has_its_dense_sizes() -> None:
    layers = {layer.name: layer for layer in load_workload("lenet5").layers({"filters": 8})}
    assert layers["pool2"].output_shape == (16, 4, 4)
    assert [layers[f"dense{i}"].output_shape for i in (1, 2, 3)] == [(120,), (84,), (10,)]


@pytest.mark.parametrize(
    ("dataset", "padding", "n_buildable"),
    [
        ("mnist", "valid", 13),
        ("fashion-mnist", "valid", 13),
        ("cifar10", "valid", 17),
        ("mnist", "same", 24),
        ("cifar10", "same", 28),
    ],
)
def test_so_many_of_48_kernels_pools_and_strides_can_be_built(
    dataset: str, padding: str, n_buildable: int
) -> None:
    workload = load_workload("lenet5")
    choices = itertools.product((2, 3, 4, 5), (2, 3, 4, 5), (1, 2, 3))
    reasons = [
        workload.infeasible(
            {
                "kernel_size": kernel,
                "pool_size": pool,
                "stride": stride,
                "dataset": dataset,
                "padding": padding,
            }
        )
        for kernel, pool, stride in choices
    ]
    assert reasons.count("") == n_buildable


@pytest.mark.parametrize("name", list_workloads())
def test_every_workload_describes_itself(name: str) -> None:
    workload = load_workload(name)
    assert workload.name == name and workload.summary in repr(workload)
    assert {p.name for p in workload.parameters} == set(workload.defaults)
    assert workload.complete() == workload.defaults
    assert workload.infeasible() == ""
    assert pickle.loads(pickle.dumps(workload)).network() == workload.network()


@pytest.mark.parametrize("name", list_workloads())
def test_every_workload_gives_a_job_as_plain_data(name: str) -> None:
    keywords = load_workload(name).job_keywords({"optimizer": "sgd", "learning_rate": 0.1})
    assert set(keywords) == {"network", "sample", "loss", "optimizer"}
    assert keywords["optimizer"] == {"name": "sgd", "learning_rate": 0.1}
    assert json.loads(json.dumps(keywords))["sample"] == keywords["sample"]


@pytest.mark.parametrize(
    ("space", "name"), [("table_4_1", "lenet5"), ("table_5_1", "resattnet18")]
)
def test_a_workload_knows_every_parameter_and_level_of_its_table(space: str, name: str) -> None:
    workload = load_workload(name)
    for parameter in load_space(space).parameters:
        for value in parameter.values:
            workload.complete({parameter.name: value})


@pytest.mark.parametrize(
    ("name", "values", "layer", "output_shape"),
    [
        ("lenet5", {"dataset": "cifar10", "padding": "same"}, "conv1", (8, 32, 32)),
        ("lenet5", {"filters": 32}, "conv2", (64, 8, 8)),
        ("resattnet18", {"kernel_size": 5, "padding": "valid"}, "stem.conv", (64, 46, 46, 46)),
        ("resattnet18", {"pool_size": 1}, "stem.pool", (64, 24, 24, 24)),
        ("resattnet18", {"filters": 16}, "attention4", (128, 3, 3, 3)),
        ("mlp", {"hidden": 3, "width": 64}, "dense3", (64,)),
        ("autoencoder", {"hidden": 3, "width": 64}, "dense3", (16,)),
        ("autoencoder", {"hidden": 3, "width": 64}, "dense6", (784,)),
        ("resnet18", {"image_size": 64, "n_classes": 7}, "output", (7,)),
        ("gpt", {"length": 32, "vocabulary": 99}, "output", (32, 99)),
    ],
)
def test_values_reach_the_layer_they_are_of(
    name: str, values: dict[str, Any], layer: str, output_shape: tuple[int, ...]
) -> None:
    layers = {x.name: x for x in load_workload(name).layers(values)}
    assert layers[layer].output_shape == output_shape


def test_activation_and_dropout_reach_the_operations() -> None:
    network = load_workload("lenet5").network({"activation": "tanh", "dropout": 0.2})
    functions = {o["function"] for o in network.operations if o["op"] == "activation"}
    shares = [o["share"] for o in network.operations if o["op"] == "dropout"]
    assert (functions, shares) == ({"tanh"}, [0.2])


def test_the_autoencoder_is_compared_with_its_input() -> None:
    workload = load_workload("autoencoder")
    assert workload.network().loss == "mse"
    assert workload.layers()[-1].output_shape == (28 * 28,)


def test_features_grow_with_the_device_batch_where_they_should() -> None:
    workload = load_workload("lenet5")
    one, eight = workload.features(), workload.features(device_batch=8)
    assert eight["forward_flop"] == 8 * one["forward_flop"]
    assert eight["activation_bytes"] == 8 * one["activation_bytes"]
    assert eight["weight_bytes"] == one["weight_bytes"] == 4 * one["n_parameters"]
    assert one == {key: float(value) for key, value in totals(workload.network()).items()}
    with pytest.raises(InvalidInputError, match="`device_batch` must be positive, but got 0"):
        workload.features(device_batch=0)


def test_a_whole_trial_may_be_given_as_values() -> None:
    workload = load_workload("lenet5")
    run = {"workload": "lenet5", "executor": "torch", "n_devices": 2, "global_batch": 64}
    assert workload.network(run) == workload.network()


def test_numbers_from_a_table_are_taken_as_meant() -> None:
    workload = load_workload("lenet5")
    assert workload.network({"kernel_size": 3.0}) == workload.network({"kernel_size": 3})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kernal_size": 3}, "No parameter is called 'kernal_size'. Did you mean 'kernel_size'"),
        ({"activation": "rellu"}, "No activation is called 'rellu'. Did you mean 'relu'"),
        ({"dataset": 3}, "No dataset is called '3'"),
        ({"kernel_size": 0}, "`kernel_size` must be a positive whole number, but got 0"),
        ({"kernel_size": 2.5}, "`kernel_size` must be a positive whole number, but got 2.5"),
        ({"filters": True}, "`filters` must be a positive whole number, but got True"),
        ({"filters": "8"}, "`filters` must be a positive whole number, but got '8'"),
        ({"filters": float("inf")}, "`filters` must be a positive whole number, but got inf"),
        ({"dropout": 1}, "`dropout` must be from 0 to less than 1, but got 1"),
        ({"learning_rate": 0}, "`learning_rate` must be positive, but got 0"),
        ({"learning_rate": float("nan")}, "`learning_rate` must be positive, but got nan"),
    ],
)
def test_values_that_break_a_rule_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message.replace("(", r"\(")):
        load_workload("lenet5").infeasible(values)


def test_an_infeasible_network_is_no_network() -> None:
    values = {"kernel_size": 5, "stride": 3}
    workload = load_workload("lenet5")
    assert workload.infeasible(values) == "conv2: kernel 5 is larger than its input of 4 x 4."
    for ask in (workload.network, workload.layers, workload.features, workload.job_keywords):
        with pytest.raises(InfeasibleError, match="conv2: kernel 5"):
            ask(values)


def test_an_autoencoder_cannot_be_halved_for_ever() -> None:
    workload = load_workload("autoencoder")
    assert workload.infeasible({"width": 8, "hidden": 4}) == ""
    assert workload.layers({"width": 8, "hidden": 4})[7].output_shape == (1,)
    reason = workload.infeasible({"width": 8, "hidden": 5})
    assert reason.startswith("dense5: a width of 8 cannot be halved 4 times")


def test_too_few_filters_leave_no_attention() -> None:
    reason = load_workload("resattnet18").infeasible({"filters": 1})
    assert reason == "attention3: `inner` must be at least 1, but is 0."


def test_shares_of_a_global_batch_are_seen_too() -> None:
    workload = load_workload("resattnet18")
    run = {"volume": 32, "filters": 8, "n_devices": 2}
    assert "batch normalisation" in workload.infeasible({**run, "global_batch": 3})
    assert workload.infeasible({**run, "global_batch": 4}) == ""


def test_an_unknown_workload_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'resnet50'"):
        load_workload("resnet5")


def test_importing_workloads_loads_no_framework() -> None:
    code = (
        "import sys; from paceline.workloads import load_workload, list_workloads\n"
        "[load_workload(name).features() for name in list_workloads()]\n"
        "print(*{'torch', 'tensorflow', 'jax', 'pandas', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_document_lists_every_workload_with_its_defaults_and_size() -> None:
    document = Path(__file__).parents[2] / "docs" / "workloads.md"
    row = r"^\| `([\w-]+)` \| (.*)" + r" \| (\d+)" * 4 + r" \|$"
    rows = re.findall(row, document.read_text(), re.M)
    assert [name for name, *_ in rows] == list_workloads()
    shown: dict[str, dict[str, str]] = {}
    for name, defaults, *figures in rows:
        fields = ("n_parameters", "forward_flop", "backward_flop", "stored_bytes")
        graph = load_workload(name).graph()
        assert [graph.total(field) for field in fields] == list(map(int, figures))
        like = re.fullmatch(r"as `(\w+)`", defaults)
        shown[name] = shown[like[1]] if like else dict(re.findall(r"`(\w+)` = ([\w.]+)", defaults))
        training = {"optimizer": "adam", "learning_rate": "0.001"}
        assert {k: str(v) for k, v in load_workload(name).defaults.items()} == {
            **shown[name],
            **training,
        }
