"""Devices of a cluster that differ."""

from dataclasses import replace
from pathlib import Path

import pytest

from paceline.clusters import DeviceGroup, load_cluster, save_cluster
from paceline.errors import InvalidInputError

GROUPS = (DeviceGroup(count=2), DeviceGroup(count=1, speed=0.5, memory_bytes=8e9))


def test_groups_survive_their_file(tmp_path: Path) -> None:
    cluster = replace(load_cluster("dgx-1"), devices=GROUPS, n_devices=3)
    save_cluster(cluster, tmp_path / "mixed.toml")
    again = load_cluster(tmp_path / "mixed.toml")
    assert again == cluster and not again.is_even
    assert again.speeds(3).tolist() == [1.0, 1.0, 0.5]
    usual = cluster.device.memory_bytes
    assert again.memories(3).tolist() == [usual, usual, 8e9]


def test_a_cluster_without_groups_is_even() -> None:
    cluster = load_cluster("abci")
    assert cluster.is_even and cluster.speeds(4).tolist() == [1.0] * 4
    assert cluster.memories(2).tolist() == [cluster.device.memory_bytes] * 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[devices]]\nspeed = 2.0\n", "`devices.0.count` must be given"),
        ("[[devices]]\ncount = 0\n", "`devices.0.count` must be positive"),
        ("[[devices]]\ncount = 1.5\n", "must be a whole number"),
        ("[[devices]]\ncount = 2\nspeed = -1\n", "`devices.0.speed` must be positive"),
        ("[[devices]]\ncount = 2\nsped = 1\n", "Did you mean 'speed'"),
        ("[devices]\ncount = 2\n", "must be a list of tables"),
    ],
)
def test_wrong_groups_are_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mixed.toml"
    save_cluster(load_cluster("dgx-1"), path)
    path.write_text(path.read_text() + "\n" + text)
    with pytest.raises(InvalidInputError, match=words):
        load_cluster(path)


def test_numbers_of_devices_must_agree(tmp_path: Path) -> None:
    path = tmp_path / "mixed.toml"
    save_cluster(replace(load_cluster("dgx-1"), devices=GROUPS, n_devices=5), path)
    with pytest.raises(InvalidInputError, match="must be the 3 of `devices`"):
        load_cluster(path)
