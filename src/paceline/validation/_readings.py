"""What the publications say in words, against what Paceline says of the same constants."""

from __future__ import annotations

from paceline.dataset import TimeBasis
from paceline.explainers import Explanation, explain
from paceline.validation._checks import Check, check_words, cite
from paceline.validation._facts import Facts

BASIS = TimeBasis(time_per="epoch", batch="device_batch")

# table, framework, categorical parameter, level called the dearest
_DEAREST = (
    *(("4.3", name, "padding", "same") for name in ("mxnet", "pytorch", "tensorflow")),
    *(("4.3", name, "dataset", "fashion-mnist") for name in ("mxnet", "pytorch", "tensorflow")),
    ("4.3", "mxnet", "activation", "tanh"),
    ("4.3", "tensorflow", "activation", "tanh"),
    ("4.3", "pytorch", "activation", "relu"),
    ("4.3", "mxnet", "optimizer", "sgd"),
    ("4.3", "pytorch", "optimizer", "adam"),
    ("4.3", "tensorflow", "optimizer", "adam"),
    ("5.2", "pytorch", "activation", "sigmoid"),
    ("5.2", "pytorch", "optimizer", "adam"),
)

_GOOD = ("ideal", "close to ideal", "better than ideal")

# table, framework, verdicts that agree with the text
_VERDICTS = (
    ("4.3", "tensorflow", ("sub-optimal",)),
    ("4.3", "mxnet", _GOOD),
    ("4.3", "pytorch", _GOOD),
    ("5.2", "pytorch", ("close to ideal",)),
)

# table, framework, parameter whose power the text calls close to zero
_SILENT = (("5.2", "pytorch", "learning_rate"), ("5.2", "pytorch", "device_batch"))


def check_readings(facts: Facts) -> list[Check]:
    """Check that `explain` reads the printed constants as the text does."""
    return [
        *(_check_dearest(facts, *row) for row in _DEAREST),
        *(_check_verdict(facts, *row) for row in _VERDICTS),
        *(_check_silent(facts, *row) for row in _SILENT),
    ]


def _check_dearest(facts: Facts, table: str, framework: str, group: str, level: str) -> Check:
    levels = {reading.name: reading for reading in _explain(facts, table, framework).levels}
    name = f"dearest {group}, {framework}"
    dearest = levels[group].ranked[0][0]
    return check_words(name, cite(table), allowed=(level,), got=dearest, kind="reading")


def _check_verdict(facts: Facts, table: str, framework: str, allowed: tuple[str, ...]) -> Check:
    scaling = {reading.name: reading for reading in _explain(facts, table, framework).scaling}
    got = scaling["n_devices"].verdict or "no verdict"
    name = f"device scaling, {framework}"
    return check_words(name, cite(table), allowed=allowed, got=got, kind="reading")


def _check_silent(facts: Facts, table: str, framework: str, parameter: str) -> Check:
    explanation = _explain(facts, table, framework)
    words = {reading.name: reading.words for reading in explanation.terms}
    words |= {reading.name: reading.words for reading in explanation.scaling}
    allowed = (f"no measurable effect of {parameter}",)
    name = f"effect of {parameter}, {framework}"
    got = words[parameter]
    return check_words(name, cite(table), allowed=allowed, got=got, kind="reading")


def _explain(facts: Facts, table: str, framework: str) -> Explanation:
    return explain(facts.column(table, framework).to_expression(), basis=BASIS)
