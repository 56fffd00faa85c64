"""Terms of a posynomial in words."""

import pytest

from paceline.estimators import PosynomialExpression, PosynomialTerm
from paceline.explainers import explain
from paceline.explainers._posynomial_names import term_in_words


def test_without_a_batch_a_term_is_named_by_what_moves_it_most() -> None:
    expression = PosynomialExpression(
        terms=(
            PosynomialTerm(coefficient_s=1e-4, powers={"size_mb": 0.8}),
            PosynomialTerm(
                coefficient_s=1e-4, powers={"size_mb": 1.0, "n_ranks": 0.5}, collective="n_ranks"
            ),
            PosynomialTerm(
                coefficient_s=1e-7, powers={"size_mb": -0.7, "n_ranks": 1.7}, collective="n_ranks"
            ),
        ),
        factors={},
        stand_ins={"size_mb": 10.0, "n_ranks": 8.0},
    )
    assert [t.label for t in explain(expression).terms] == [
        "work, grows with size_mb",
        "collective communication, grows with n_ranks and size_mb",
        "collective communication, grows with n_ranks, shrinks with size_mb",
    ]


def test_a_term_in_words_puts_the_strongest_first_and_like_powers_together() -> None:
    powers = {"n_layers": 0.667, "n_gpus": 0.14, "seq_len": 1.96, "batch": 1.0, "steps": 1.01}
    powers["d_model"] = 0.75
    assert term_in_words(PosynomialTerm(coefficient_s=1.0, powers=powers)) == (
        "grows with the square of seq_len, in proportion to steps and batch, like d_model^0.75 "
        "and n_layers^0.667, and slightly with n_gpus"
    )


def test_a_square_root_of_two_parameters_is_two_roots() -> None:
    term = PosynomialTerm(coefficient_s=1.0, powers={"n_gpus": 0.5, "batch": 0.5, "tp": -0.5})
    assert term_in_words(term) == (
        "grows with the square roots of n_gpus and batch; falls with the square root of tp"
    )


@pytest.mark.parametrize(
    ("power", "name"),
    [
        (1.87, "work that grows faster than the batch"),
        (0.97, "per-sample work"),
        (0.5, "work that grows slower than the batch"),
        (0.1, "per-step overhead"),
    ],
)
def test_a_term_is_named_by_how_it_goes_with_the_batch(power: float, name: str) -> None:
    term = PosynomialTerm(coefficient_s=1e-4, powers={"device_batch": power})
    expression = PosynomialExpression(terms=(term,), factors={}, stand_ins={"device_batch": 9.0})
    assert [t.label for t in explain(expression).terms] == [name]
