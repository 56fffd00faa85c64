from pathlib import Path
from typing import Any

import pytest
from tests.measurement.small_studies import DATA, small_study

from paceline.errors import InvalidInputError, SchemaError, UnknownNameError
from paceline.measurement import Study, list_studies, load_study


@pytest.mark.parametrize("name", ["chapter3", "chapter4", "chapter5", "demo"])
def test_shipped_studies_load_and_have_a_smaller_variant(name: str) -> None:
    study = load_study(name)
    assert study.reduced().name == f"{name}-reduced"
    assert Study.from_dict(study.to_dict()) == study
    assert name in list_studies()


def test_the_studies_are_those_of_the_thesis() -> None:
    four, three = load_study("chapter4"), load_study("chapter3")
    assert four.n_trials == 1500 and four.space.names[0] == "kernel_size"
    assert four.space["n_devices"].values == (1, 2, 3)
    assert len(three.workloads) == 3 and len(three.executors) == 5
    assert three.protocol.epochs == 2
    assert load_study("chapter5").workloads == ("resattnet18",)


def test_a_study_is_read_from_a_file_with_a_space_beside_it(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(small_study().space.to_toml())
    path = tmp_path / "mine.toml"
    path.write_text(
        'schema = "paceline/study/1"\nname = "mine"\nworkload = "lenet5"\nexecutor = "torch"\n'
        'space = "space.toml"\nn_trials = 3\n[restrict]\nfilters = [4]\n'
        "[reduced]\nn_trials = 1\nexecutor = 'jax'\n"
    )
    study = load_study(path)
    assert study.space["filters"].values == (4,)
    assert study.reduced().n_trials == 1 and study.reduced().executors == ("jax",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_trials": 0}, "`n_trials` must be a whole number of at least 1, but got 0"),
        ({"n_trials": None}, "`n_trials` must be given"),
        ({"design": "magic"}, "No design is called 'magic'"),
        ({"n_trails": 3}, "Did you mean 'n_trials'"),
        ({"protocol": {"lives": 1}}, "`protocol.lives` must be a whole number of at least 2"),
        ({"protocol": {"epochs": 1}}, "`protocol.epochs` must be 0 or at least 2"),
        ({"protocol": {"steps": 1}}, "Did you mean 'n_steps'"),
        (
            {"protocol": {"repeat_share": 2}},
            "`protocol.repeat_share` must be a number from 0 to 1",
        ),
        ({"protocol": {"per_layer": 1}}, "`protocol.per_layer` must be true or false"),
        ({"protocol": 3}, "`protocol` must be a table"),
        ({"limits": {"trial_seconds": -1}}, "`limits.trial_seconds` must be a number"),
        ({"workload": []}, "`workloads` must be a name"),
        ({"executor": ["torch", "torch"]}, "`executors` must be different names"),
        ({"schema": "paceline/space/1"}, "`schema` must be"),
        ({"schema": "paceline/study/2"}, "made by a newer Paceline"),
        ({"space": "table_4_1"}, "`space`.*and not both"),
        ({"fixed": {"device_batch": 3}}, "`fixed.device_batch` must not be a parameter"),
        ({"fixed": {"global_batch": 3}}, "either `device_batch` or `global_batch`"),
        ({"restrict": {"filter": [1]}}, "Did you mean 'filters'"),
        ({"restrict": {"n_devices": [0]}}, "`n_devices` must be a whole number"),
        ({"random_state": -1}, "`random_state` must be a whole number"),
        ({"name": ""}, "`name` of a study must not be empty"),
    ],
)
def test_a_wrong_field_is_named_in_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        Study.from_dict({**DATA, **change}, "mine.toml")
    assert "\n" not in str(caught.value)
    assert "mine.toml" in str(caught.value)


def test_a_global_batch_must_reach_all_devices() -> None:
    data = {
        **DATA,
        "parameter": [
            {"name": "n_devices", "role": "extrinsic", "kind": "numeric", "values": [4]},
            {"name": "global_batch", "role": "extrinsic", "kind": "numeric", "values": [2, 8]},
        ],
    }
    with pytest.raises(SchemaError, match="`global_batch >= n_devices` must hold"):
        Study.from_dict(data)


def test_unknown_studies_suggest_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'chapter4'"):
        load_study("chapter44")
    with pytest.raises(InvalidInputError, match="must be readable"):
        load_study(tmp_path / "absent.toml")
    (tmp_path / "broken.toml").write_text("name = ")
    with pytest.raises(SchemaError, match="must be valid TOML"):
        load_study(tmp_path / "broken.toml")


def test_a_study_without_a_smaller_variant_says_so() -> None:
    with pytest.raises(InvalidInputError, match="must have a table `reduced`"):
        small_study().reduced()
