"""A study of the user's own network: where it is, what its samples are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.workloads import LOSSES, load_workload

FIELDS = ("file", "name", "input_shape", "n_classes", "vocabulary", "loss")


def read_module(module: object, workloads: Sequence[str], origin: str = "") -> dict[str, Any]:
    """Return the table ``module`` of a study, checked and complete; empty when there is none.

    Parameters
    ----------
    module
        ``file`` (from the study's folder) and ``name``, unless ``--module`` gives them;
        ``input_shape``, ``n_classes``, ``vocabulary`` (for tokens) and ``loss`` of its samples.
        Without ``input_shape`` samples and loss are those of the study's workload.
    workloads
        Names of the study's workloads, if any.
    origin
        File of the study.
    """
    if not isinstance(module, Mapping):
        raise InvalidInputError(f"`module` must be a table, but got {module!r}.")
    if not module:
        return {}
    for name in module:
        if name not in FIELDS:
            raise UnknownNameError("field of `module`", str(name), FIELDS)
    if "file" not in module and "name" not in module:
        return dict(module)  # only its samples: the rest is given on the command line
    for name in ("file", "name"):
        if not isinstance(module.get(name), str) or not module[name]:
            raise InvalidInputError(
                f"`module.{name}` must be a text, but got {module.get(name)!r}."
            )
    beside = Path(origin).parent / module["file"]
    found = {**module, "file": str(beside.resolve())}
    return found if "input_shape" in module else found | _borrowed(workloads)


def parse_module(text: str) -> dict[str, str]:
    """Return file and name in ``FILE:NAME``."""
    file, colon, name = text.rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise InvalidInputError(
            f"--module must be FILE:NAME, but got {text!r}. Try: --module net.py:Net"
        )
    return {"file": str(Path(file).resolve()), "name": name}


def sample_of(module: Mapping[str, Any]) -> dict[str, Any]:
    """Return one input of the user's module, as a job describes it."""
    if "file" not in module:
        raise InvalidInputError("`module.file` must be given. Try: --module net.py:Net")
    shape, loss = module["input_shape"], module.get("loss", "cross_entropy")
    if not isinstance(shape, list | tuple) or not shape or not all(map(_is_count, shape)):
        raise InvalidInputError(
            f"`module.input_shape` must be a list of positive whole numbers, but got {shape!r}."
        )
    if loss not in LOSSES:
        raise UnknownNameError("loss", str(loss), LOSSES)
    sample: dict[str, Any] = {"shape": list(shape)}
    for name in ("n_classes", "vocabulary"):
        if name in module:
            if not _is_count(module[name]):
                raise InvalidInputError(
                    f"`module.{name}` must be a positive whole number, but got {module[name]!r}."
                )
            sample[name] = module[name]
    if loss == "cross_entropy" and "n_classes" not in sample:
        raise InvalidInputError("`module.n_classes` must be given for the loss cross_entropy.")
    return sample


def _borrowed(workloads: Sequence[str]) -> dict[str, Any]:
    if len(workloads) != 1:
        raise InvalidInputError(
            "`module.input_shape` must be given, or one workload whose samples are taken, "
            f"but got {len(workloads)} workloads."
        )
    network = load_workload(workloads[0]).network()
    sample = network.sample
    found = {"input_shape": list(sample["shape"]), "loss": network.loss}
    return found | {n: sample[n] for n in ("n_classes", "vocabulary") if sample.get(n)}


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
