"""A campaign of the user's own network: ``--module FILE:NAME``."""

import re
from pathlib import Path
from typing import Any

import pytest

from paceline.cli import main
from paceline.dataset import read_observations, read_store
from paceline.errors import InvalidInputError
from paceline.measurement import Study, load_study, measure

pytest.importorskip("torch", reason="PyTorch is not installed. Try: pip install 'paceline[torch]'")

NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self, width, *, depth=1):
        super().__init__()
        if width == 13:
            raise ValueError("unlucky")
        self.first = nn.Linear(64, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.last = nn.Linear(width, 4)

    def forward(self, x):
        x = self.first(x.flatten(1)).relu()
        for layer in self.hidden:
            x = layer(x).relu()
        return self.last(x)

def make(**keywords):
    return Net(**keywords)

def encoder(width):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.Linear(width, 64))

Alias = Net
number = 3
"""
STUDY = """
schema = "paceline/study/1"
name = "own"
executor = "torch"
design = "grid"
[module]
file = "net.py"
name = "Net"
input_shape = [8, 8]
n_classes = 4
[[parameter]]
name = "width"
role = "intrinsic"
kind = "numeric"
values = [8, 16]
[[parameter]]
name = "n_devices"
role = "extrinsic"
kind = "numeric"
values = [1, 2]
[fixed]
device_batch = 4
[protocol]
n_warmup = 1
n_steps = 3
n_phase_steps = 2
per_layer = true
recycle_every = 20
repeat_share = 0.0
remeasure_share = 0.0
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(NET)
    path = tmp_path / "own.toml"
    path.write_text(STUDY)
    return path


def run(capsys: Any, *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_the_users_own_network_is_measured_over_its_space(study: Path) -> None:
    path = study.with_name("runs.db")
    dataset = measure(load_study(study), path)
    assert sorted(dataset.X["width"].unique()) == [8, 16] and dataset.n_rows == 4
    assert set(read_store(path).other["workload"]) == {"Net"}
    life = read_observations(path)[0].provenance["lives"][0]
    names = [layer["name"] for layer in life["workers"][0]["layers"]]
    assert names == ["first", "hidden.0", "last"]


def test_the_command_line_names_another_one_and_resumes(study: Path, capsys: Any) -> None:
    path = study.with_name("runs.db")
    words = ("measure", study, "-o", path, "--module", f"{study.with_name('net.py')}:make")
    for _ in range(2):
        code, out, err = run(capsys, *words)
        assert (code, err) == (0, "") and out.startswith("4 trials measured")
    code, _, err = run(capsys, "measure", study, "-o", path)
    assert code == 2 and "`workloads` was ['make'] and is ['Net']" in err


def test_samples_may_be_those_of_a_workload(study: Path) -> None:
    study.write_text(STUDY.replace("input_shape = [8, 8]\nn_classes = 4", ""))
    with pytest.raises(InvalidInputError, match=r"`module.input_shape` must be given"):
        load_study(study)
    study.write_text(f'workload = "autoencoder"\n{study.read_text()}')
    module = load_study(study).module
    assert module["input_shape"] == [1, 28, 28] and module["loss"] == "mse"
    assert load_study(study).with_module(f"{study}:encoder").module["loss"] == "mse"


def test_only_the_samples_may_be_in_the_study(study: Path) -> None:
    study.write_text(STUDY.replace('file = "net.py"\nname = "Net"\n', ""))
    plan = load_study(study)
    with pytest.raises(InvalidInputError, match=r"Try: --module net\.py:Net"):
        measure(plan, study.with_name("runs.db"))
    assert plan.with_module("some/net.py:Net").workloads == ("Net",)


def test_a_study_of_a_module_survives_its_own_plain_form(study: Path) -> None:
    plan = load_study(study)
    assert Study.from_dict(plan.to_dict()) == plan
    assert "module" not in load_study("demo").to_dict()  # campaigns from before go on


def test_an_autoencoder_of_ones_own_learns_its_input(study: Path) -> None:
    changes = [
        ('name = "Net"\ninput', 'name = "encoder"\ninput'),
        ("n_classes = 4", "loss = 'mse'"),
    ]
    text = STUDY.replace("[1, 2]", "[1]").replace("[8, 16]", "[8]")
    for old, new in changes:
        text = text.replace(old, new)
    study.write_text(text.replace("per_layer = true", ""))
    path = study.with_name("runs.db")
    assert measure(load_study(study), path).n_rows == 1


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("absent.py:Net", "must name a readable Python file, but .*absent.py' is not: No such"),
        ("net.py:Nets", "No class or function of .*net.py is called 'Nets'. Did you mean 'Net'"),
        ("net.py", "--module must be FILE:NAME, but got .*net.py'"),
        ("net.py:Net:", "--module must be FILE:NAME"),
        ("broken.py:Net", "must name a Python file, but .*broken.py' is none, line 1"),
        ("number.py:Net", "does not take `width`: the study gives width, it takes size"),
        ("needs.py:Net", "it needs `height` too: the study gives width, it takes width, height"),
    ],
)
def test_a_wrong_module_is_one_line(study: Path, module: str, message: str, capsys: Any) -> None:
    head = "from torch import nn\nclass Net(nn.Module):\n    def __init__(self, "
    study.with_name("number.py").write_text(f"{head}size=3): ...\n")
    study.with_name("broken.py").write_text("class Net(\n")
    study.with_name("needs.py").write_text(f"{head}width, height, deep=2): ...\n")
    path = study.with_name("runs.db")
    code, out, err = run(capsys, "measure", study, "-o", path, "--module", study.parent / module)
    assert code == 2 and not out and len(err.splitlines()) == 1
    assert re.search(message, err), err
    assert not path.exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('executor = "torch"', 'executor = "jax"', "must be run by `torch`"),
        ("[8, 8]", "[8, 0]", "`module.input_shape` must be a list of positive"),
        ("n_classes = 4", "", "`module.n_classes` must be given"),
        ("n_classes = 4", "n_classes = 0", "`module.n_classes` must be a positive"),
        ("n_classes = 4", "loss = 'hinge'", "No loss is called 'hinge'"),
        ("n_classes = 4", "classes = 4", "Did you mean 'n_classes'"),
        ('name = "Net"\ninput', "name = 3\ninput", "`module.name` must be a text"),
    ],
)
def test_a_wrong_table_is_one_line(study: Path, old: str, new: str, message: str) -> None:
    study.write_text(STUDY.replace(old, new))
    with pytest.raises(InvalidInputError, match=message) as caught:
        measure(load_study(study), study.with_name("runs.db"), executors={"jax": _Ready()})
    assert "\n" not in str(caught.value)


class _Ready:
    def readiness(self) -> str:
        return ""


def test_what_only_a_worker_can_tell_fails_its_trial(study: Path, capsys: Any) -> None:
    study.write_text(STUDY.replace("[8, 16]", "[8, 13]").replace("[1, 2]", "[1]"))
    path = study.with_name("runs.db")
    assert measure(load_study(study), path).n_rows == 1
    (failed,) = [seen for seen in read_observations(path) if seen.failed]
    assert failed.values["width"] == 13 and "ValueError: unlucky" in failed.reason
    study.write_text(STUDY.replace('name = "Net"\ninput', 'name = "number"\ninput'))
    code, _, err = run(capsys, "measure", study, "-o", study.with_name("other.db"))
    assert code != 0 and "all 4 failed" in err and len(err.splitlines()) == 1
