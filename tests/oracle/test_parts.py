"""The pieces that a sweep is made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.oracle import simulate
from paceline.oracle._columns import columns_of
from paceline.oracle._cut import cut_units
from paceline.oracle._keys import distinct
from paceline.oracle.strategies.layerwise import sequential_time
from paceline.oracle.strategies.pipeline import (
    gpipe_time,
    interleaved_time,
    one_forward_one_backward_time,
)
from paceline.oracle.strategies.spatial import split_grid
from paceline.workloads import LayerGraph, load_workload

seconds = st.floats(0.1, 2.0)


@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=12), st.data())
def test_a_cut_is_nearly_balanced(weights: list[float], data: st.DataObject) -> None:
    n_parts = data.draw(st.integers(1, len(weights)))
    bounds = cut_units(tuple(weights), n_parts)
    assert bounds[0] == 0 and bounds[-1] == len(weights) and len(bounds) == n_parts + 1
    assert (np.diff(bounds) > 0).all()
    largest = max(np.add.reduceat(weights, bounds[:-1]))
    assert largest <= least_bottleneck(weights, n_parts) * (1 + 1e-6)


def least_bottleneck(weights: list[float], n_parts: int) -> float:
    """By dynamic programming over the end of the last part."""
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    best = sums[1:].tolist()
    for _ in range(n_parts - 1):
        best = [
            min(
                (max(best[h], sums[i + 1] - sums[h + 1]) for h in range(i)),
                default=float(sums[i + 1]),
            )
            for i in range(len(weights))
        ]
    return float(best[-1])


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.5, 1.0, 2.0])), min_size=1))
def test_distinct_rows_are_found_once(rows: list[tuple[int, float]]) -> None:
    keys = distinct([[a for a, _ in rows], [b for _, b in rows]])
    assert len(keys) == len(set(rows))
    assert [rows[keys.first[i]] for i in keys.which] == rows


def test_many_columns_do_not_overflow() -> None:
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 1000, 500) for _ in range(12)]
    keys = distinct(columns)
    assert len(keys) == len({tuple(row) for row in zip(*columns, strict=True)})


@pytest.mark.parametrize("name", ["resnet50", "gpt", "lenet5", "llama-7b"])
def test_distinct_layers_add_up_to_the_graph(name: str) -> None:
    graph = load_workload(name).graph()
    columns = columns_of(graph)
    for field in ("forward_flop", "n_parameters", "stored_bytes", "output_bytes"):
        assert columns[field] @ columns.counts == pytest.approx(graph.total(field))
        assert (columns[field] @ columns.unit_counts).sum() == pytest.approx(graph.total(field))
    parts = columns.stage_counts(3)
    np.testing.assert_array_equal(parts.sum(axis=1), columns.counts)
    assert len(columns) <= len(graph)


def test_graphs_with_equal_layers_share_their_columns() -> None:
    one, other = (load_workload("mlp").graph() for _ in range(2))
    assert one is not other and columns_of(one) is columns_of(other)


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    n = draw(st.integers(2, 6))
    forward, backward = (
        np.array(draw(st.lists(seconds, min_size=n, max_size=n))) for _ in range(2)
    )
    sent = np.array(draw(st.lists(st.floats(0.0, 0.5), min_size=n - 1, max_size=n - 1)))
    return forward, backward, sent, draw(st.integers(1, 20))


@settings(deadline=None)
@given(pipelines())
def test_gpipe_in_closed_form_is_the_simulation(
    pipeline: tuple[np.ndarray, np.ndarray, np.ndarray, int],
) -> None:
    forward, backward, sent, n = pipeline
    run = simulate("gpipe", forward, backward, n_micro_batches=n, transfer_s=sent)
    found = gpipe_time(forward[None], backward[None], sent[None], np.array([float(n)]))
    assert found[0] == pytest.approx(run.step_s)


@settings(deadline=None)
@given(pipelines())
def test_1f1b_in_closed_form_is_a_near_lower_bound(
    pipeline: tuple[np.ndarray, np.ndarray, np.ndarray, int],
) -> None:
    forward, backward, sent, n = pipeline
    run = simulate("1f1b", forward, backward, n_micro_batches=n, transfer_s=sent)
    found = one_forward_one_backward_time(
        forward[None], backward[None], sent[None], np.array([float(n)])
    )
    assert 0.6 * run.step_s <= found[0] <= run.step_s * (1 + 1e-9)


def test_1f1b_is_within_a_few_percent_where_stages_are_nearly_equal() -> None:
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(100):
        n_stages, n = int(rng.integers(2, 9)), int(rng.integers(1, 33))
        forward = rng.uniform(0.9, 1.1, n_stages)
        sent = rng.uniform(0.0, 0.2, n_stages - 1)
        run = simulate("1f1b", forward, 2 * forward, n_micro_batches=n, transfer_s=sent)
        found = one_forward_one_backward_time(
            forward[None], 2 * forward[None], sent[None], np.array([float(n)])
        )
        errors.append(1 - found[0] / run.step_s)
    assert np.mean(errors) < 0.02 and np.max(errors) < 0.08


def test_interleaved_stages_in_closed_form_are_near_the_simulation() -> None:
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(60):
        n_stages, virtual = int(rng.integers(2, 7)), int(rng.integers(2, 5))
        n = n_stages * int(rng.integers(1, 6))
        forward = rng.uniform(0.9, 1.1, n_stages * virtual)
        sent = rng.uniform(0.0, 0.1, len(forward) - 1)
        run = simulate(
            "interleaved",
            forward,
            2 * forward,
            n_micro_batches=n,
            transfer_s=sent,
            virtual_stages=virtual,
        )
        found = interleaved_time(
            forward[None], 2 * forward[None], sent[None], np.array([float(n)]), virtual
        )
        errors.append(abs(found[0] / run.step_s - 1))
    assert np.mean(errors) < 0.03 and np.max(errors) < 0.1


@given(pipelines())
def test_one_stage_at_a_time_is_the_sum_of_all(
    pipeline: tuple[np.ndarray, np.ndarray, np.ndarray, int],
) -> None:
    forward, backward, sent, n = pipeline
    found = sequential_time(forward[None], backward[None], sent[None], np.array([float(n)]))
    assert found[0] == pytest.approx(n * (forward.sum() + backward.sum() + 2 * sent.sum()))


@given(st.integers(1, 4096), st.integers(1, 3))
def test_a_grid_has_all_parts_and_is_as_even_as_can_be(p: int, n_axes: int) -> None:
    grid = split_grid(p, n_axes)
    assert len(grid) == n_axes and np.prod(grid) == p
    assert list(grid) == sorted(grid, reverse=True)


def test_roles_of_a_gated_transformer(gpt: LayerGraph) -> None:
    """Megatron-LM: gate and up are divided by outputs, down by inputs."""
    columns = columns_of(load_workload("llama-7b").graph())
    roles = dict(zip([x.name for x in columns.layers], columns.roles, strict=True))
    assert roles["block1.gate"] == roles["block1.up"] == {"column"}
    assert roles["block1.down"] == {"row"}
    assert roles["block1.attention"] == {"heads"}
    assert "vocabulary_in" in roles["embedding"] and roles["output"] == {"vocabulary_out"}
    assert roles["block1.gated"] == roles["loss"] == {"inside"}
