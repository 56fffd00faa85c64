"""The seams of the package: light imports, one front door per package, documented names."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import paceline

SOURCE = Path(paceline.__file__).parent
PACKAGES = sorted(p.name for p in SOURCE.iterdir() if (p / "__init__.py").is_file())
HEAVY = ("sklearn", "scipy", "pandas", "torch", "numpy", "rich")


def loaded_by(code: str) -> set[str]:
    probe = f"{code}\nimport sys; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_paceline_loads_nothing_heavy() -> None:
    assert not loaded_by("import paceline").intersection(HEAVY)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import contextlib, io\nfrom paceline.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main(['--help'])"
    )
    assert not loaded_by(code).intersection(HEAVY)


def test_the_front_door_holds_what_it_promises() -> None:
    assert set(paceline.__all__) == {*paceline._HOMES, "__version__"}
    for name in paceline.__all__:
        assert getattr(paceline, name) is not None
    with pytest.raises(AttributeError):
        _ = paceline.nonsense


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_exists_and_is_documented(package: str) -> None:
    module = importlib.import_module(f"paceline.{package}")
    assert module.__all__ and module.__doc__
    for name in module.__all__:
        thing = getattr(module, name)
        if callable(thing) and getattr(thing, "__module__", "").startswith("paceline"):
            assert thing.__doc__, f"{package}.{name} has no docstring"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_packages_import_each_other_through_their_front_doors(path: Path) -> None:
    home = path.relative_to(SOURCE).parts[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("paceline."):
            parts = node.module.split(".")
            private = any(part.startswith("_") for part in parts[1:])
            assert not private or parts[1] == home, f"{path.name} imports {node.module}"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def test_the_command_line_has_the_agreed_options() -> None:
    """New options are added here on purpose, or not at all."""
    from paceline.cli._main import LazyGroup, command

    data = "--time --intrinsic --extrinsic --categorical --time-unit --throughput --time-per"
    agreed = {
        "demo": "--output --reduced",
        "measure": "--output --reduced --executor --trials --module --dry-run --engine --address "
        "--output-format",
        "trace": "--output --at --steps --warmup --timeout --output-format",
        "executors": "",
        "import": f"--output --append --output-format {data} --group",
        "fit": f"--output --form --terms --solver --penalty --strength --power-strength --seeds "
        f"--random-state --output-format {data} --group --features --workload --cluster",
        "predict": "--at --output --samples --epochs --price --strict --output-format",
        "check": f"--max-error --output-format {data}",
        "explain": "--at --over --export --output-format",
        "phases": "--at --output-format",
        "compare": f"--folds --holdout --output --random-state --output-format {data} --group "
        f"--features --workload --cluster",
        "report": f"--output --compare --cluster --workload --images {data}",
        "calibrate": "--output --workers --backend --output-format",
        "oracle": "--cluster --devices --strategy --global-batch --device-batch --knee --samples "
        "--optimizer --precision --at --module --input-shape --vocabulary --output "
        "--output-format",
        "plan": "--cluster --devices --global-batch --predictor --objective --deadline --samples "
        "--strategy --use-all --unrunnable --optimizer --precision --at --module --input-shape "
        "--vocabulary --space --export --output --output-format",
        "run": "--steps --warmup --output --module --data --timeout --rendezvous --nodes "
        "--node-rank --output-format",
        "serve": "--host --port --max-upload-mb",
        "validate": "--output-format",
        "list": "--output-format",
    }
    assert isinstance(command, LazyGroup)
    for verb in command.list_commands(None):
        options = {
            name
            for parameter in command.get_command(None, verb).params
            for name in parameter.opts
            if name.startswith("--")
        }
        assert options == set(agreed[verb].split()), verb
