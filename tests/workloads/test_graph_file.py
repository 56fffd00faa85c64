"""Layer graphs as TOML: written, read back, and refused with file and field."""

import re
from pathlib import Path
from typing import Any

import pytest

from paceline.errors import InvalidInputError, SchemaError
from paceline.workloads import LayerGraph, list_workloads, load_graph, load_workload, save_graph

PLAIN = """
schema = "paceline/graph/1"
name = "mine"

[[layer]]
name = "conv"
kind = "conv"
input_shape = [3, 8, 8]
output_shape = [4, 8, 8]
weight_shape = [4, 3, 3, 3]
n_parameters = 112
forward_flop = 13824
stored_bytes = 768
splits = ["spatial", "filter"]

[[layer]]
name = "head"
kind = "linear"
input_shape = [4, 8, 8]
output_shape = [10]
forward_flop = 5120
"""


@pytest.mark.parametrize("name", list_workloads())
def test_a_graph_survives_its_file(name: str, tmp_path: Path) -> None:
    graph = load_workload(name).graph()
    save_graph(graph, tmp_path / "graph.toml")
    again = load_graph(tmp_path / "graph.toml")
    assert again == graph and again.fingerprint == graph.fingerprint


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_follows_may_be_left_out(tmp_path: Path) -> None:
    graph = load_graph(written(tmp_path, PLAIN))
    assert isinstance(graph, LayerGraph) and graph.loss == "cross_entropy"
    conv, head = graph.layers
    assert (conv.block, conv.backward_flop, conv.weight_bytes) == ("conv", 27648, 448)
    assert (conv.input_bytes, conv.output_bytes) == (768, 1024)
    assert (head.n_parameters, head.forward_flop, head.n_heads) == (0, 5120, 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"paceline/graph/1"', '"paceline/cluster/1"', '`schema` must be "paceline/graph/1"'),
        ("n_parameters = 112", "n_parameters = -1", "'conv': `n_parameters` must be a whole"),
        ("n_parameters = 112", "n_parameters = true", "`n_parameters` must be a whole number"),
        ("forward_flop = 13824", "forward_flop = 1.5", "'conv': `forward_flop` must be a whole"),
        ("forward_flop", "foward_flop", "not `foward_flop`: did you mean `forward_flop`?"),
        ("input_shape = [3, 8, 8]", "", "layer 'conv': `input_shape` must be given"),
        ('name = "head"', "", "layer 2: `name` must be given, but is missing"),
        ('name = "head"', 'name = "conv"', "`name` of layers must differ, but 'conv' repeats"),
        ("[4, 8, 8]\nweight", "[4, 0, 8]\nweight", "'conv': `output_shape` must be a list of"),
        ('["spatial", "filter"]', '["spacial"]', "'conv': `splits` must be a list of some of"),
        ('kind = "conv"', "kind = 3", "'conv': `kind` must be a text"),
        ('kind = "conv"', 'kind = "cnv"', "no `kind` is called 'cnv'. Did you mean conv?"),
        ("forward_flop = 5120", "", "'head': `forward_flop` must be given of a layer of kind lin"),
        ('name = "mine"', 'name = "mine"\nloss = "hinge"', "`loss` must be one of"),
        ('name = "mine"', 'name = "mine"\nvalues = 3', "`values` must be a table"),
        ('name = "mine"', "name = 3", "`name` must be a text"),
        ('name = "mine"', 'name = "mine', "must be valid TOML"),
        ("forward_flop = 13824", "stride = 0", "`stride` must be a whole number of at least 1"),
    ],
)
def test_a_wrong_file_is_refused_with_file_and_field(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    path = written(tmp_path, PLAIN.replace(old, new, 1))
    with pytest.raises(SchemaError) as caught:
        load_graph(path)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_layers_of_a_block_must_follow_each_other(tmp_path: Path) -> None:
    rows = "".join(
        f'[[layer]]\nname = "{n}"\nkind = "x"\nblock = "{b}"\n'
        "input_shape = []\noutput_shape = []\n"
        for n, b in [("one", "a"), ("two", "b"), ("three", "a")]
    )
    path = written(tmp_path, 'schema = "paceline/graph/1"\n' + rows)
    with pytest.raises(SchemaError, match="layer 'three': layers of one `block` must follow"):
        load_graph(path)


@pytest.mark.parametrize("rows", ["", "layer = 3", "layer = []", "layer = [3]"])
def test_a_graph_must_have_layers(rows: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"`layer` must be one or more tables \[\[layer\]\]"):
        load_graph(written(tmp_path, f'schema = "paceline/graph/1"\n{rows}'))


@pytest.mark.parametrize("use", [load_graph, lambda path: save_graph(GRAPH, path)])
def test_a_file_that_is_not_there_is_said_in_one_line(use: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="No such file or directory"):
        use(tmp_path / "nowhere" / "graph.toml")


def test_the_documents_example_is_a_graph(tmp_path: Path) -> None:
    document = Path(__file__).parents[2] / "docs" / "workloads.md"
    blocks = re.findall(r"```toml\n(.*?)```", document.read_text(), re.S)
    (example,) = [block for block in blocks if "paceline/graph/1" in block]
    assert load_graph(written(tmp_path, example)).layers[0].weight_bytes == 4 * 224


GRAPH = load_workload("mlp").graph()
