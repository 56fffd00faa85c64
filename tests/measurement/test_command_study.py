"""A campaign over the user's own script: ``executor = "command"``."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from paceline.cli import main
from paceline.dataset import read_observations
from paceline.errors import InvalidInputError
from paceline.measurement import dry_run, load_study, measure

# prints and writes a time per step that depends on its arguments, as a training script would
SCRIPT = """
import json, sys, time
batch, width, n_devices = (int(word) for word in sys.argv[1:4])
if width == 13:
    sys.exit("unlucky")
if width == 99:
    time.sleep(600)
with open("times.jsonl", "a") as log:
    for step in range(8):
        step_s = 1e-4 * (batch + width) * n_devices * (3 if step == 0 else 1)
        print(f"epoch 1 step {step} time {1e3 * step_s:.3f} ms", flush=True)
        log.write(json.dumps({"seconds": step_s}) + "\\n")
if "forever" in sys.argv:
    time.sleep(600)
"""
STUDY = """
schema = "paceline/study/1"
name = "script"
executor = "command"
design = "grid"
[[parameter]]
name = "width"
role = "intrinsic"
kind = "numeric"
values = [32, 64]
[[parameter]]
name = "n_devices"
role = "extrinsic"
kind = "numeric"
values = [1, 2]
[fixed]
device_batch = 16
[protocol]
n_warmup = 1
n_steps = 4
recycle_every = 20
repeat_share = 0.0
[limits]
trial_seconds = 20
"""
OPTIONS = """
[options.command]
command = "PYTHON train.py {global_batch} {width} {n_devices} MORE"
folder = "FOLDER"
"""
PATTERN = "pattern = 'step \\d+ time (?P<time>[\\d.]+) ms'\nunit = 'ms'\n"
JSONL = "jsonl = 'times.jsonl'\nkey = 'seconds'\n"


def write(folder: Path, steps: str = PATTERN, more: str = "", **changes: str) -> Path:
    (folder / "train.py").write_text(SCRIPT)
    options = OPTIONS.replace("FOLDER", str(folder)).replace("PYTHON", sys.executable)
    text = STUDY + options.replace("MORE", more) + steps
    for old, new in changes.items():
        text = text.replace(old, new)
    path = folder / "script.toml"
    path.write_text(text)
    return path


def run(capsys: Any, *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.mark.parametrize("steps", [PATTERN, JSONL], ids=["pattern", "jsonl"])
def test_a_campaign_measures_the_users_script_over_a_space(tmp_path: Path, steps: str) -> None:
    study = write(tmp_path, steps)
    before = hashlib.sha256((tmp_path / "train.py").read_bytes()).hexdigest()
    dataset = measure(load_study(study), tmp_path / "runs.db")
    assert dataset.n_rows == 4
    for (width, n), time_s in zip(
        dataset.X[["width", "n_devices"]].to_numpy(), dataset.y, strict=True
    ):
        assert time_s == pytest.approx(1e-4 * (16 * n + width) * n, rel=1e-3)
    assert hashlib.sha256((tmp_path / "train.py").read_bytes()).hexdigest() == before
    lives = read_observations(tmp_path / "runs.db")[0].provenance["lives"]
    assert len({life["workers"][0]["process"] for life in lives}) == 2  # two process lives


def test_hooks_see_the_steps_of_a_script_that_says_nothing(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="Try: pip install 'paceline[torch]'")
    study = write(tmp_path, "hooks = true\n", **{"[32, 64]": "[32]", "[1, 2]": "[1]"})
    (tmp_path / "train.py").write_text(
        "import sys, time, torch\nw = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(w.parameters(), lr=0.1)\n"
        "for _ in range(8):\n    time.sleep(1e-3 * int(sys.argv[2]))\n    optimizer.step()\n"
    )
    dataset = measure(load_study(study), tmp_path / "runs.db")
    assert dataset.y.iloc[0] == pytest.approx(0.032, rel=0.3)


def test_the_verb_measures_fits_and_resumes(tmp_path: Path, capsys: Any) -> None:
    study, store = write(tmp_path), tmp_path / "runs.db"
    code, out, err = run(capsys, "measure", study, "-o", store)
    assert (code, err) == (0, "") and out.startswith("4 trials measured")
    n_lines = len(Path(tmp_path / "times.jsonl").read_text().splitlines())
    assert run(capsys, "measure", study, "-o", store)[0] == 0
    assert len(Path(tmp_path / "times.jsonl").read_text().splitlines()) == n_lines
    assert run(capsys, "fit", store, "--seeds", "1")[0] == 0


def test_a_script_that_trains_for_ever_is_stopped_when_there_are_enough(tmp_path: Path) -> None:
    changes = {"[32, 64]": "[32]", "[1, 2]": "[1]"}
    study = write(tmp_path, f"stop = true\n{PATTERN}", "forever", **changes)
    assert measure(load_study(study), tmp_path / "runs.db").n_rows == 1


def test_trials_that_crash_or_hang_fail_with_their_reason(tmp_path: Path) -> None:
    changes = {
        "[32, 64]": "[32, 13, 99]",
        "[1, 2]": "[1]",
        "trial_seconds = 20": "trial_seconds = 3",
    }
    path = tmp_path / "runs.db"
    measure(load_study(write(tmp_path, **changes)), path)
    reasons = {seen.values["width"]: seen.reason for seen in read_observations(path)}
    assert reasons[32] == "" and "Its last line: unlucky" in reasons[13]
    assert "must end within 3 s" in reasons[99]


def test_a_dry_run_says_how_long_it_takes(tmp_path: Path) -> None:
    assert dry_run(load_study(write(tmp_path))).n_runs == 8
    assert not (tmp_path / "runs.db").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"{width}": "{widht}"}, "No parameter is called 'widht'. Did you mean 'width'"),
        ({"pattern =": "patern ="}, "No option of `command` is called 'patern'"),
        ({PATTERN: ""}, "must have one of `pattern`, `jsonl` and `hooks = true`, but got none"),
        ({PATTERN: PATTERN + JSONL}, "but got pattern and jsonl"),
        ({PATTERN: "hooks = true\nunit = 's'\n"}, "`options.command.unit` must not be given"),
        ({"(?P<time>": "("}, "must hold the named group"),
        ({"unit = 'ms'": "unit = 'h'"}, "No unit is called 'h'"),
        ({"command = ": "line = "}, "No option of `command` is called 'line'"),
        ({sys.executable: "no-such-program"}, "'no-such-program' is not"),
        ({"folder = ": "folder = '/nowhere' #"}, "'/nowhere' is none"),
        ({"unit = 'ms'": "stop = 1"}, "`options.command.stop` must be true or false"),
        ({"unit = 'ms'": "environment = 1"}, "`options.command.environment` must be a table"),
        (
            {'executor = "command"': 'executor = "torch"'},
            "`workload` or `workloads` must be given",
        ),
    ],
)
def test_a_wrong_option_is_one_line(
    tmp_path: Path, changes: dict[str, str], message: str, capsys: Any
) -> None:
    study = write(tmp_path, **changes)
    code, out, err = run(capsys, "measure", study, "-o", tmp_path / "runs.db")
    assert code == 2 and not out and len(err.splitlines()) == 1 and message in err
    assert not (tmp_path / "runs.db").exists()


def test_frameworks_take_their_interpreter_from_the_options(tmp_path: Path) -> None:
    text = write(tmp_path).read_text().partition("[options.command]")[0]
    text = text.replace('"command"', '"torch"').replace("width", "filters")
    study = tmp_path / "torch.toml"
    study.write_text(f'workload = "lenet5"\n{text}[options.torch]\npython = "/no/python"\n')
    with pytest.raises(InvalidInputError, match="'/no/python' is not"):
        measure(load_study(study), tmp_path / "runs.db")
    study.write_text(study.read_text().replace("python =", "pythn ="))
    with pytest.raises(InvalidInputError, match="Did you mean 'python'"):
        measure(load_study(study), tmp_path / "runs.db")
    assert json.loads(json.dumps(load_study(study).to_dict()))["options"]["torch"]
