"""The built wheel works outside the clone, with its package data."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def call(*command: object, cwd: Path) -> str:
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_installed_wheel_runs_every_command(tmp_path: Path) -> None:
    call(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT, cwd=ROOT)
    (wheel,) = (tmp_path / "dist").glob("paceline-*.whl")
    # the dependencies of this environment, but not the package itself
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    call(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps",
         "--disable-pip-version-check", wheel, cwd=tmp_path)  # fmt: skip
    here = next(Path(p) for p in sys.path if p.endswith("site-packages"))
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    for entry in here.iterdir():
        if "paceline" not in entry.name and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    paceline = tmp_path / "env" / "bin" / "paceline"
    where = call(python, "-c", "import paceline; print(paceline.__file__)", cwd=tmp_path)
    assert str(tmp_path) in where and str(ROOT) not in where
    assert "table_5_1" in call(paceline, "list", "spaces", cwd=tmp_path)
    assert " 0 failed" in call(paceline, "validate", cwd=tmp_path)
    assert "chapter4" in call(paceline, "list", "studies", cwd=tmp_path)
    code = (
        "from paceline.validation import generate_study\n"
        "generate_study(n_rows=200).dataset.to_csv('times.csv')"
    )
    call(python, "-c", code, cwd=tmp_path)
    call(paceline, "fit", "times.csv", "--seeds", "1", "-o", "model.json", cwd=tmp_path)
    assert "90 %" in call(paceline, "predict", "model.json", "--at", "n_devices=3", cwd=tmp_path)
    assert "How it scales" in call(paceline, "explain", "model.json", cwd=tmp_path)
    call(paceline, "report", "times.csv", "model.json", "-o", "report.html", cwd=tmp_path)
    assert "The formula" in (tmp_path / "report.html").read_text()
