"""Plans as files: what a hand can break is refused in one line."""

import json

import pytest

from paceline.errors import InvalidInputError, SchemaError
from paceline.scenario import Plan, Stage, Strategy, load_plan, save_plan


def some_plan(**changes):
    known = {
        "workload": {"name": "lenet5", "values": {}},
        "fingerprint": "0123456789abcdef",
        "cluster": "here.toml",
        "strategy": Strategy(data=2, pipeline=2, micro_batches=2),
        "global_batch": 8,
        "stages": (
            Stage(first=0, end=5, names=("a", "e")),
            Stage(first=5, end=9, names=("f", "i")),
        ),
        "placement": ((0, 1), (2, 3)),
        "replica_batches": (5, 3),
        "predicted": {"step_s": 1.0},
    }
    return Plan(**{**known, **changes})


def edited(tmp_path, change):
    path = tmp_path / "plan.json"
    save_plan(some_plan(), path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path


def test_a_plan_is_read_as_it_was_written(tmp_path):
    assert load_plan(edited(tmp_path, lambda data: None)) == some_plan()


def put(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(data):
        for key in keys:
            data = data[key]
        data[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("schema", "paceline/model/1"), "must have the schema 'paceline/plan/1'"),
        (put("strategy", "pipeline", 3), "`stages` must be 3"),
        (put("strategy", "pipeline", 0), "positive whole number"),
        (put("strategy", "pipeline", 1.5), "positive whole number"),
        (put("strategy", "schedule", "2f2b"), "No schedule is called '2f2b'"),
        (put("strategy", "pipelines", 2), "Did you mean 'pipeline'"),
        (put("placement", [[0, 1], [1, 2]]), "every device once"),
        (put("placement", [[0, 1], [2, -3]]), "counted from 0"),
        (put("placement", [[0, 1]]), "must name 2 devices for each of 2 replicas"),
        (put("placement", 7), "not a plan that can be run"),
        (put("replica_batches", [4, 5]), "must sum to the global batch of 8"),
        (put("replica_batches", [8]), "one batch for each of 2"),
        (put("stages", 1, "first", 6), "without gaps"),
        (put("stages", 0, "end", 0), "without gaps"),
        (put("stages", 1, "names", []), "not a plan that can be run"),
        (put("predicted", "step_s", "soon"), "not a plan that can be run"),
        (put("global_batch", "many"), "not a plan that can be run"),
        (lambda data: data.pop("fingerprint"), "must have 'fingerprint'"),
    ],
)
def test_a_plan_edited_into_nonsense_is_refused(tmp_path, change, words):
    path = edited(tmp_path, change)
    with pytest.raises(InvalidInputError) as stopped:
        load_plan(path)
    assert isinstance(stopped.value, SchemaError)
    assert words in str(stopped.value) and str(path) in str(stopped.value)
    assert len(str(stopped.value).splitlines()) == 1


@pytest.mark.parametrize("text", ["", "[]", "{", "not a plan", '{"schema": 1}'])
def test_what_is_no_plan_is_refused(tmp_path, text):
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(SchemaError, match=r"must be JSON|must have the schema"):
        load_plan(path)
