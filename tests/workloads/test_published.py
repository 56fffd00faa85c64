"""Sizes of networks against those that others print."""

import pytest

from paceline.workloads import load_workload

TORCHVISION = "pytorch.org/vision/stable/models.html, num_params of the weights"
GPT2 = "parameters of the released checkpoints, tied weights once (the paper rounds otherwise)"
LLAMA = "safetensors metadata of the released checkpoints"
PUBLISHED = [
    ("alexnet", 61_100_840, TORCHVISION),
    ("vgg16", 138_357_544, TORCHVISION),
    ("resnet18", 11_689_512, TORCHVISION),
    ("resnet50", 25_557_032, TORCHVISION),
    ("resnet152", 60_192_808, TORCHVISION),
    ("gpt2", 124_439_808, GPT2),
    ("gpt2-medium", 354_823_168, GPT2),
    ("gpt2-large", 774_030_080, GPT2),
    ("gpt2-xl", 1_557_611_200, GPT2),
    ("llama-1b", 1_235_814_400, LLAMA),
    ("llama-7b", 6_738_415_616, LLAMA),
    ("llama-8b", 8_030_261_248, LLAMA),
    ("llama-70b", 68_976_648_192, LLAMA),
    ("mixtral-8x7b", 46_702_792_704, LLAMA),
]


@pytest.mark.parametrize(("name", "n_parameters", "source"), PUBLISHED)
def test_a_network_has_its_published_number_of_parameters(
    name: str, n_parameters: int, source: str
) -> None:
    assert load_workload(name).graph().total("n_parameters") == n_parameters, source


@pytest.mark.parametrize(
    ("name", "giga_multiply_adds"),
    [("alexnet", 0.71), ("vgg16", 15.47), ("resnet152", 11.51)],
)
def test_a_network_has_its_published_multiply_adds(name: str, giga_multiply_adds: float) -> None:
    """As torchvision's table of weights prints them, GFLOPS there being multiply-adds."""
    flop = load_workload(name).graph().total("forward_flop")
    assert flop / 2e9 == pytest.approx(giga_multiply_adds, abs=0.006)


def test_cosmoflow_has_the_size_that_follows_from_the_reference() -> None:
    """By hand from MLPerf HPC's code and settings; no count is printed there."""
    convolutions = sum(i * o * 8 + o for i, o in [(4, 32), (32, 64), (64, 128)])
    convolutions += sum(i * o * 8 + o for i, o in [(128, 256), (256, 512)])
    dense = (512 * 4**3 * 128 + 128) + (128 * 64 + 64) + (64 * 4 + 4)
    graph = load_workload("cosmoflow").graph()
    assert graph.total("n_parameters") == convolutions + dense == 5_597_604


def test_paradls_cosmoflow_is_larger_in_its_dense_layers_on_larger_cubes() -> None:
    workload = load_workload("cosmoflow-paradl")
    small, large = (workload.graph({"volume": v}) for v in (256, 512))
    dense = {x.name: x for x in large.layers}["dense1"]
    assert large.total("n_parameters") > small.total("n_parameters")
    assert dense.input_shape == (128 * 5**3,)  # 512 255 126 63 16 8 4, and 5 behind the last
