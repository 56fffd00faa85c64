"""What exchanges cost: formulas, limits and the physics of links."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.clusters import (
    ALGORITHMS,
    Cluster,
    Device,
    Group,
    Level,
    Link,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    list_clusters,
    load_cluster,
    parameter_server,
    point_to_point,
    reduce_scatter,
)
from paceline.errors import InvalidInputError, UnknownNameError

DEVICE = Device(name="d", peak_flops={"float32": 1e12}, memory_bytes=1e9, memory_bandwidth=1e11)
COLLECTIVES = [all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, parameter_server]


def flat(latency_s: float = 1e-5, bandwidth: float = 1e9, **link: float) -> Cluster:
    joined = Link(name="wire", latency_s=latency_s, bandwidth=bandwidth, **link)
    return Cluster(name="flat", device=DEVICE, levels=(Level(name="all", size=0, link=joined),))


def nested(contention: float = 1.0, oversubscription: float = 1.0) -> Cluster:
    inner = Link(name="fast", latency_s=1e-6, bandwidth=1e11)
    outer = Link(name="slow", latency_s=1e-5, bandwidth=1e9, contention=contention)
    levels = (
        Level(name="node", size=4, link=inner, oversubscription=oversubscription),
        Level(name="cluster", size=0, link=outer),
    )
    return Cluster(name="nested", device=DEVICE, levels=levels)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_one_member_exchanges_nothing(collective) -> None:
    cluster = flat(floor_s=1.0)
    assert collective(cluster, [0, 1e9], 1).tolist() == [0, 0]


def test_a_ring_costs_what_paradl_prints() -> None:
    # ParaDL, section 4: 2 (p - 1) (a + m b / p), here p = 64, NVLink's constants of ABCI
    cluster = flat(9e-6, 50e9)
    assert all_reduce(cluster, 1e8, 64, algorithm="ring") == pytest.approx(
        2 * 63 * (9e-6 + 1e8 / 64 / 50e9)
    )
    assert all_gather(cluster, 1e8, 64, algorithm="ring") == pytest.approx(
        63 * (9e-6 + 1e8 / 64 / 50e9)
    )


def test_members_follow_their_formulas_on_one_level() -> None:
    cluster, m, a, b = flat(), 1e6, 1e-5, 1e-9
    assert all_reduce(cluster, m, 8, algorithm="tree") == pytest.approx(3 * (a + m * b))
    assert all_reduce(cluster, m, 8, algorithm="halving") == pytest.approx(
        6 * a + 2 * 7 / 8 * m * b
    )
    assert all_to_all(cluster, m, 8, algorithm="pairwise") == pytest.approx(7 * (a + m / 8 * b))
    assert broadcast(cluster, m, 8, algorithm="tree") == pytest.approx(3 * (a + m * b))
    assert parameter_server(cluster, m, 8) == pytest.approx(2 * 7 * (a + m * b))
    assert point_to_point(cluster, m) == pytest.approx(a + m * b)


def test_paleos_parameter_server_has_no_latency() -> None:
    cluster = load_cluster("paleo-k80")
    assert parameter_server(cluster, 1e8, 4) == pytest.approx(2 * 1e8 * 3 / 2.5e9)


def test_servers_on_all_workers_cost_a_ring() -> None:
    cluster = flat(latency_s=0.0)
    assert parameter_server(cluster, 1e8, 8, n_servers=8) == pytest.approx(
        all_reduce(cluster, 1e8, 8, algorithm="ring")
    )


@given(st.integers(1, 64), st.floats(0, 1e9))
def test_levels_cost_one_ring_where_there_is_one_level(n: int, m: float) -> None:
    ring = all_reduce(flat(), m, n, algorithm="ring")
    assert all_reduce(flat(), m, n, algorithm="hierarchical") == pytest.approx(ring)


@given(
    st.sampled_from(COLLECTIVES),
    st.sampled_from([1, 2, 3, 4, 8, 12, 16, 64]),
    st.sampled_from([1, 2, 4, 8]),
    st.floats(0, 1e9),
    st.floats(1, 100),
)
def test_more_bandwidth_or_less_latency_never_slows(collective, n, stride, m, factor) -> None:
    cluster = load_cluster("abci")
    for i, level in enumerate(cluster.levels):
        quick = replace(level.link, bandwidth=level.link.bandwidth * factor)
        prompt = replace(level.link, latency_s=level.link.latency_s / factor)
        for link in (quick, prompt):
            levels = list(cluster.levels)
            levels[i] = replace(level, link=link)
            better = replace(cluster, levels=tuple(levels))
            assert collective(better, m, n, stride) <= collective(cluster, m, n, stride)


@given(
    st.sampled_from(list_clusters()),
    st.integers(1, 4096),
    st.sampled_from([1, 2, 3, 8, 64]),
    st.floats(0, 1e10),
)
def test_an_all_reduce_costs_at_most_its_two_halves(name, n, stride, m) -> None:
    """Else replicas that share weights out would gain by an artefact."""
    cluster = load_cluster(name)
    halves = reduce_scatter(cluster, m, n, stride) + all_gather(cluster, m, n, stride)
    assert all_reduce(cluster, m, n, stride) <= halves * (1 + 1e-12)


def test_two_nodes_of_a100_reach_what_was_measured() -> None:
    # nccl-tests issue 100: 2 x 8 A100, four 200 Gb/s adapters a node, 91 GB/s of bus bandwidth
    cluster = load_cluster("dgx-a100")
    node, fabric = cluster.levels
    half = replace(fabric, link=replace(fabric.link, contention=2.0))  # 8 devices, 4 adapters
    seconds = all_reduce(replace(cluster, levels=(node, half)), 8e9, 16)
    assert 2 * 15 / 16 * 8e9 / seconds == pytest.approx(91e9, rel=0.2)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_more_bytes_never_cost_less(collective) -> None:
    times = collective(load_cluster("abci"), np.geomspace(1, 1e10, 50), 64)
    assert np.all(np.diff(times) >= 0)


def test_arrays_are_broadcast() -> None:
    cluster = nested()
    times = all_reduce(cluster, np.geomspace(1, 1e9, 5)[:, None], np.array([1, 2, 4, 8]))
    assert times.shape == (5, 4) and times.dtype == np.float64
    assert times[3, 2] == all_reduce(cluster, np.geomspace(1, 1e9, 5)[3], 4)
    strided = all_reduce(cluster, 1e6, np.array([2, 2, 2]), np.array([1, 2, 4]))
    assert strided[0] == strided[1] < strided[2]  # the last one crosses nodes


def test_the_public_cost_is_that_of_the_fastest_member() -> None:
    cluster, n = nested(), np.array([2, 3, 4, 16, 256])
    for m in (1e2, 1e6, 1e9):
        named = [all_reduce(cluster, m, n, algorithm=a) for a in ("ring", "tree", "hierarchical")]
        assert np.array_equal(all_reduce(cluster, m, n), np.min(named, axis=0))


def test_levels_beat_the_flat_ring_on_many_nodes() -> None:
    cluster = nested()
    ring = all_reduce(cluster, 1e8, 64, algorithm="ring")
    assert all_reduce(cluster, 1e8, 64, algorithm="hierarchical") < ring / 2


def test_interleaved_groups_share_the_link_out_of_a_node() -> None:
    alone = all_reduce(nested(contention=8.0), 1e8, 8, 1, algorithm="ring")
    sharing = all_reduce(nested(contention=8.0), 1e8, 8, 4, algorithm="ring")
    free = all_reduce(nested(contention=1.0), 1e8, 8, 4, algorithm="ring")
    assert sharing == pytest.approx(8 * free, rel=1e-2)  # ParaDL's phi = 2 x 4
    assert alone == pytest.approx(free, rel=1e-2)  # one flow of one group


def test_oversubscription_slows_what_all_send_outwards() -> None:
    wide, narrow = nested(), nested(oversubscription=3.0)
    assert all_to_all(narrow, 1e8, 16) > 2 * all_to_all(wide, 1e8, 16)
    assert all_reduce(narrow, 1e8, 4) == all_reduce(wide, 1e8, 4)  # stays inside


def test_a_chain_costs_its_slowest_hop() -> None:
    cluster = nested()
    assert point_to_point(cluster, 1e6, n=4) < point_to_point(cluster, 1e6, n=8)
    assert point_to_point(cluster, 1e6, 4) == point_to_point(cluster, 1e6, n=8)


def test_small_messages_cost_the_floor() -> None:
    cluster = flat(floor_s=1e-3)
    assert all_reduce(cluster, [1, 1e3], 2).tolist() == [1e-3, 1e-3]
    assert all_reduce(cluster, 1e8, 2) > 1e-3


def test_a_group_needs_members() -> None:
    for n, stride in ((0, 1), (2, 0), (1.5, 1), (np.array([1, -2]), 1)):
        with pytest.raises(InvalidInputError, match="positive whole number"):
            Group(n, stride)
        with pytest.raises(InvalidInputError):
            all_reduce(flat(), 1.0, n, stride)


def test_an_unknown_algorithm_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'ring'"):
        all_reduce(flat(), 1.0, 2, algorithm="rings")
    assert set(ALGORITHMS) >= {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
