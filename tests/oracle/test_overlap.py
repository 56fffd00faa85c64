"""Gradient exchange behind the backward pass."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.oracle import assign_buckets, communication_time, exposed_communication
from paceline.oracle._overlap import RULES, Cost

MIB = 2**20
times = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8)


def linear(startup_s: float, s_per_byte: float) -> Cost:
    return lambda n_bytes: startup_s + s_per_byte * n_bytes


def recurrence(backward_s: list[float], messages: list[tuple[int, float]], cost: Cost) -> float:
    """REFERENCE 9 as printed, for messages (index of the layer that completes it, bytes)."""
    ends, clock = {}, 0.0
    for i in reversed(range(len(backward_s))):
        clock += backward_s[i]
        ends[i] = clock
    through = 0.0
    for layer, size in messages:
        through = max(through, ends[layer]) + float(np.asarray(cost(np.array(size))))
    return max(through - clock, 0.0)


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    backward = draw(times)
    n = len(backward)
    sizes = draw(
        st.lists(st.one_of(st.just(0.0), st.floats(1.0, 40 * MIB)), min_size=n, max_size=n)
    )
    return backward, sizes


@given(networks(), st.floats(0, 0.5), st.floats(1e-10, 1e-7))
def test_layers_follow_the_printed_recurrence(
    network: tuple[list[float], list[float]], startup_s: float, s_per_byte: float
) -> None:
    backward, sizes = network
    cost = linear(startup_s, s_per_byte)
    messages = [(i, sizes[i]) for i in reversed(range(len(sizes))) if sizes[i] > 0]
    got = exposed_communication(backward, sizes, cost, rule="layers")
    assert float(got) == pytest.approx(recurrence(backward, messages, cost), abs=1e-12)


@given(networks(), st.floats(0, 0.5), st.floats(1e-10, 1e-7))
@settings(max_examples=50)
def test_optimal_equals_the_best_of_all_ways_to_merge(
    network: tuple[list[float], list[float]], startup_s: float, s_per_byte: float
) -> None:
    backward, sizes = network
    n, cost = len(sizes), linear(startup_s, s_per_byte)
    found = []
    for k in range(n):
        for cuts in combinations(range(1, n), k):
            edges = [n, *reversed(cuts), 0]
            parts = [(b, sum(sizes[b:a])) for a, b in pairwise(edges)]
            found.append(recurrence(backward, [p for p in parts if p[1] > 0], cost))
    got = float(exposed_communication(backward, sizes, cost, rule="optimal"))
    assert got == pytest.approx(min(found), abs=1e-9)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "greedy"])
@given(
    network=networks(),
    links=st.tuples(st.floats(0, 0.5), st.floats(1e-10, 1e-7)),
    gains=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
@settings(max_examples=60)
def test_a_faster_link_is_never_slower(
    rule: str,
    network: tuple[list[float], list[float]],
    links: tuple[float, float],
    gains: tuple[float, float],
) -> None:
    slow = exposed_communication(*network, linear(*links), rule=rule)
    faster = linear(links[0] * gains[0], links[1] * gains[1])
    assert exposed_communication(*network, faster, rule=rule) <= slow + 1e-12


def test_the_greedy_rule_can_be_slower_on_a_faster_link() -> None:
    """Less startup makes it merge less, and the many messages then cost more together."""
    found = []
    generator = np.random.default_rng(0)
    for _ in range(300):
        backward, sizes = generator.uniform(0, 1, 6), generator.uniform(1, 100, 6)
        slow, fast = (
            float(exposed_communication(backward, sizes, linear(a, 0.01), rule="greedy"))
            for a in (0.5, 0.45)
        )
        found.append(fast - slow)
    assert max(found) > 0.05


@given(networks(), st.floats(0, 0.5), st.floats(1e-10, 1e-7))
def test_best_is_the_least_of_its_members_and_optimal_no_worse(
    network: tuple[list[float], list[float]], startup_s: float, s_per_byte: float
) -> None:
    got = {
        r: float(exposed_communication(*network, linear(startup_s, s_per_byte), rule=r))
        for r in RULES
    }
    assert got["best"] == min(got["layers"], got["ddp"], got["merged"])
    assert got["optimal"] <= min(got.values()) + 1e-9


@pytest.mark.parametrize("rule", RULES)
def test_scenarios_as_arrays_equal_scenarios_one_by_one(rule: str) -> None:
    generator = np.random.default_rng(1)
    backward = generator.uniform(0, 0.01, (7, 12))
    sizes = generator.uniform(0, 20 * MIB, (7, 12)) * (generator.random((7, 12)) > 0.3)
    startup_s = generator.uniform(0, 1e-3, 7)
    got = exposed_communication(
        backward, sizes, lambda n_bytes: startup_s[:, None] + 1e-9 * n_bytes, rule=rule
    )
    one = [
        exposed_communication(backward[i], sizes[i], linear(startup_s[i], 1e-9), rule=rule)
        for i in range(7)
    ]
    np.testing.assert_allclose(got, one, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_one_table_of_bytes_serves_many_scenarios(rule: str) -> None:
    generator = np.random.default_rng(2)
    backward = generator.uniform(0, 0.01, (5, 9))
    sizes = generator.uniform(0, 20 * MIB, 9)
    got = exposed_communication(backward, sizes, linear(1e-4, 1e-9), rule=rule)
    rows = np.broadcast_to(sizes, (5, 9))
    np.testing.assert_allclose(
        got, exposed_communication(backward, rows, linear(1e-4, 1e-9), rule=rule), atol=1e-12
    )


def test_buckets_close_with_the_gradient_that_fills_them() -> None:
    sizes = [30 * MIB, 10 * MIB, 10 * MIB, 10 * MIB, MIB // 2, MIB // 2]
    assert assign_buckets(sizes).tolist() == [2, 1, 1, 1, 0, 0]


def test_buckets_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    distributed = pytest.importorskip("torch.distributed")
    counts = np.random.default_rng(3).integers(1, 4_000_000, 40)
    arrival = [torch.empty(int(n), device="meta") for n in counts[::-1]]
    groups, _ = distributed._compute_bucket_assignment_by_size(arrival, [MIB, 25 * MIB])
    theirs = {i: bucket for bucket, group in enumerate(groups) for i in group}
    ours = assign_buckets(counts * 4)[::-1]
    assert ours.tolist() == [theirs[i] for i in range(40)]


@pytest.mark.parametrize("rule", RULES)
def test_nothing_to_send_costs_nothing(rule: str) -> None:
    assert exposed_communication([0.1, 0.2], [0.0, 0.0], linear(1.0, 1.0), rule=rule) == 0


def test_all_messages_are_counted_hidden_or_not() -> None:
    cost = linear(0.1, 0.01)
    assert communication_time([1.0, 0.0, 2.0], cost, rule="layers") == pytest.approx(0.23)
    assert communication_time([1.0, 0.0, 2.0], cost, rule="merged") == pytest.approx(0.13)
    with pytest.raises(UnknownNameError, match="greedy"):
        communication_time([1.0], cost, rule="greedy")


def test_mistakes_are_named() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'greedy'"):
        exposed_communication([1.0], [1.0], linear(0, 1), rule="gredy")
    with pytest.raises(InvalidInputError, match="but got 2 and 1"):
        exposed_communication([1.0, 2.0], [1.0], linear(0, 1))
