from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from paceline.cli import main
from paceline.validation import generate_study


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def call(*args: object) -> Outcome:
        with pytest.raises(SystemExit) as stopped:
            main([str(arg) for arg in args])
        captured = capsys.readouterr()
        return Outcome(code=int(stopped.value.code or 0), out=captured.out, err=captured.err)

    return call


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "study.csv"
    generate_study("tensorflow", n_rows=200, noise=0.05, random_state=0).dataset.to_csv(path)
    return path


@pytest.fixture(scope="session")
def model(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.json"
    with pytest.raises(SystemExit) as stopped:
        main(["fit", str(study), "-o", str(path), "--seeds", "1", "--time-per", "epoch"])
    assert stopped.value.code == 0
    return path
