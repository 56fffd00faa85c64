"""Layers and their sums, and every way in which a network is refused."""

from typing import Any

import pytest

from paceline.errors import InfeasibleError, InvalidInputError, UnknownNameError
from paceline.workloads import Network, layer_table, totals

CONV = {
    "op": "conv",
    "name": "conv1",
    "dims": 2,
    "in": 1,
    "out": 4,
    "kernel": 5,
    "stride": 1,
    "padding": [0, 0],
    "bias": True,
}
POOL = {
    "op": "pool",
    "name": "pool1",
    "dims": 2,
    "kernel": 2,
    "stride": 2,
    "padding": [0, 0],
    "kind": "max",
}


def network(*operations: dict[str, Any], shape: tuple[int, ...] = (1, 8, 8)) -> Network:
    return Network(operations=operations, sample={"shape": list(shape), "n_classes": 2})


def test_a_convolution_by_hand() -> None:
    (layer,) = layer_table(network(CONV))
    assert layer.output_shape == (4, 4, 4)
    assert layer.n_parameters == 4 * 25 + 4
    assert layer.weight_bytes == 4 * 104
    assert layer.forward_flop == 2 * 25 * 4 * 16
    assert layer.activation_bytes == 4 * 64
    assert (layer.name, layer.kind, layer.block) == ("conv1", "conv", "conv1")


def test_totals_are_sums_and_flattening_holds_no_memory_of_its_own() -> None:
    plain = totals(network(CONV, POOL))
    flat = totals(network(CONV, POOL, {"op": "flatten", "name": "flat"}))
    assert plain == flat
    assert plain["activation_bytes"] == 4 * (64 + 16)


def test_layers_of_a_residual_name_the_block_they_belong_to() -> None:
    body = {**CONV, "name": "block.conv", "in": 1, "out": 1, "kernel": 3, "padding": [1, 1]}
    residual = {"op": "residual", "name": "block", "body": [body], "shortcut": []}
    layers = layer_table(network(residual))
    assert [(layer.name, layer.block) for layer in layers] == [
        ("block.conv", "block"),
        ("block", "block"),
    ]
    assert (layers[1].forward_flop, layers[1].n_parameters) == (0, 0)


@pytest.mark.parametrize(
    ("operations", "shape", "message"),
    [
        ([CONV], (1, 3, 3), "conv1: kernel 5 is larger than its input of 3 x 3."),
        (
            [{**CONV, "padding": [0, 1]}],
            (1, 3, 3),
            "conv1: kernel 5 is larger than its input of 3 x 3 padded by 0 + 1.",
        ),
        ([POOL], (1, 4, 1), "pool1: window 2 is larger than its input of 4 x 1."),
        (
            [{**POOL, "padding": [2, 2]}],
            (1, 4, 4),
            "pool1: padding 2 is more than half of the window of 2.",
        ),
        (
            [{"op": "residual", "name": "sum", "body": [POOL], "shortcut": []}],
            (1, 4, 4),
            "sum: its body gives 1 x 2 x 2, but its shortcut 1 x 4 x 4, which cannot be summed.",
        ),
        (
            [{"op": "causal_attention", "name": "look", "width": 6, "heads": 4}],
            (5, 6),
            "look: 4 heads do not divide a width of 6.",
        ),
        (
            [{"op": "rotary_attention", "name": "look", "width": 8, "heads": 4, "key_heads": 3}],
            (5, 8),
            "look: 3 heads of keys must divide 4 of queries, and the 2 numbers of a head must be "
            "even to be rotated.",
        ),
        (
            [{"op": "experts", "name": "mix", "width": 8, "inner": 4, "experts": 2, "chosen": 3}],
            (5, 8),
            "mix: a token cannot meet 3 of 2 experts.",
        ),
        (
            [{"op": "product", "name": "gate", "body": [POOL], "shortcut": []}],
            (1, 4, 4),
            "gate: its body gives 1 x 2 x 2, but its shortcut 1 x 4 x 4, which cannot be "
            "multiplied.",
        ),
        (
            [{"op": "embedding", "name": "words", "vocabulary": 9, "width": 6, "length": 4}],
            (5,),
            "words: needs at most 4 tokens in a row, but its input is 5.",
        ),
        (
            [{"op": "self_attention", "name": "look", "dims": 2, "channels": 4, "inner": 0}],
            (4, 2, 2),
            "look: `inner` must be at least 1, but is 0.",
        ),
    ],
)
def test_what_cannot_be_built_says_which_layer_and_why(
    operations: list[dict[str, Any]], shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(InfeasibleError) as caught:
        layer_table(network(*operations, shape=shape))
    assert caught.value.reason == message


@pytest.mark.parametrize(
    ("operation", "shape", "message"),
    [
        ({**CONV, "in": 3}, (1, 8, 8), "`in` must be the 1 of its input, but is 3"),
        ({**CONV, "dims": 3}, (1, 8, 8), "must have channels and 3 axes, but is 1 x 8 x 8"),
        ({"op": "conv", "name": "c"}, (1, 8, 8), "'conv' must have the key `dims`"),
        ({"op": "flatten"}, (1, 8, 8), "'flatten' must have the key `name`"),
        ({"op": "residual", "name": "r"}, (1, 8, 8), "'residual' must have the key `body`"),
        ({"op": "product", "name": "p"}, (1, 8, 8), "'product' must have the key `body`"),
        (
            {"op": "linear", "name": "l", "in": 5, "out": 2, "bias": True},
            (4,),
            "l: `in` must be the 4 of its input, but is 5",
        ),
        ({"op": "layer_norm", "name": "n", "features": 5}, (4,), "n: `features` must be the 4"),
        (
            {"op": "causal_attention", "name": "a", "width": 4, "heads": 1},
            (4,),
            "a: its input must be length x width, but is 4",
        ),
    ],
)
def test_a_description_that_contradicts_itself_is_refused(
    operation: dict[str, Any], shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        layer_table(network(operation, shape=shape))


def test_an_unknown_operation_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'linear'"):
        layer_table(network({"op": "linaer", "name": "x"}))


def test_names_of_layers_must_differ() -> None:
    with pytest.raises(InvalidInputError, match="'pool1' more than once"):
        layer_table(network(POOL, POOL))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operations": ()}, "at least one operation"),
        ({"loss": "hinge"}, "`loss` must be 'cross_entropy' or 'mse', but got 'hinge'"),
        ({"sample": {"n_classes": 2}}, "positive whole numbers"),
        ({"sample": {"shape": [1, 0]}}, "positive whole numbers"),
    ],
)
def test_a_network_must_be_whole(changes: dict[str, Any], message: str) -> None:
    fields = {"operations": (POOL,), "sample": {"shape": [1, 8, 8]}, "loss": "mse"}
    with pytest.raises(InvalidInputError, match=message):
        Network(**{**fields, **changes})


def test_a_network_survives_being_plain_data() -> None:
    original = network(CONV, POOL)
    assert Network.from_dict(original.to_dict()) == original
    assert str(original) == "2 operations on 1 x 8 x 8, cross_entropy"
