"""Note when torch's optimizers step, in a process that knows nothing of Paceline.

Python imports this file at start-up because its folder is in PYTHONPATH. It takes that folder
off the path again, runs the `sitecustomize` that it hides, if there is one, and waits for
`torch.optim` to be imported. Without torch it does nothing. Standard library only.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  keep start-up light


def _run_hidden_sitecustomize() -> None:
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != _HERE]  # noqa: PTH100
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _install() -> None:
    path = os.path.join(_HERE, "step_times.py")  # noqa: PTH118
    spec = importlib.util.spec_from_file_location("_paceline_step_times", path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.install()


if os.environ.get("PACELINE_STEPS"):
    _install()
_run_hidden_sitecustomize()
