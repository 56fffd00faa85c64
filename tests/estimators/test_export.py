"""Exports give the same numbers as the expression."""

import builtins
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paceline.errors import MissingDependencyError, UnknownNameError
from paceline.estimators import GenericExpression, PosynomialExpression, PosynomialTerm, Term

EXPRESSION = PosynomialExpression(
    terms=(
        PosynomialTerm(
            coefficient_s=3.2e-7,
            powers={"batch size": 1.0, "depth": 0.5},
            factors={"gpu": {"A_100": 0.5, "V100": 2.0}},
        ),
        PosynomialTerm(coefficient_s=0.004, powers={"n_gpus": 1.0}, collective="n_gpus"),
        PosynomialTerm(coefficient_s=0.0021, powers={"n_gpus": 0.25}, collective="n_gpus"),
        PosynomialTerm(
            coefficient_s=0.013,
            powers={"depth": -0.333, "dropout": 0.1},
            zero_factors={"dropout": 0.02},
        ),
    ),
    factors={"gpu": {"A_100": 0.8, "V100": 1.25}, "fused": {"0": 1.1, "1": 1 / 1.1}},
    stand_ins={"batch size": 32.0, "depth": 10.0, "n_gpus": 4.0, "dropout": 0.4},
    zero_factors={"dropout": 0.9},
)
ROWS = pd.DataFrame(
    {
        "batch size": [8.0, 64.0, 256.0, 1024.0],
        "depth": [3.0, 18.0, 50.0, 7.0],
        "n_gpus": [1.0, 2.0, 16.0, 512.0],
        "dropout": [0.0, 0.5, 0.2, 0.0],
        "gpu": ["A_100", "V100", "H100", "V100"],
        "fused": ["0", "1", "1", "0"],
    }
)
TIMES = EXPRESSION.evaluate(ROWS)


def run_source(source: str) -> Any:
    space: dict[str, Any] = {}
    exec(compile(source, "exported", "exec"), space)
    return space["time_s"]


def test_python_source_gives_the_same_times_and_imports_only_math() -> None:
    source = EXPRESSION.to_python()
    assert re.findall(r"^\s*(?:import|from) .*", source, re.M) == ["import math"]
    times = [run_source(source)(*row) for row in ROWS.itertuples(index=False)]
    assert times == pytest.approx(TIMES, rel=1e-12)


def test_python_source_reads_numbers_that_are_labels_and_refuses_negative_numbers() -> None:
    function = run_source(EXPRESSION.to_python())
    first = list(ROWS.iloc[0])
    assert function(*first[:-1], 0.0) == function(*first[:-1], "0")
    with pytest.raises(ValueError, match="depth must not be negative"):
        function(8, -3, *first[2:])


def test_names_in_python_never_collide() -> None:
    names = ("a b", "a-b", "class", "math", "term_1", "shared", "2d", "_level", "time")
    expression = PosynomialExpression(
        terms=(PosynomialTerm(coefficient_s=2.0, powers=dict.fromkeys(names, 1.0)),),
        factors={},
        stand_ins=dict.fromkeys(names, 1.0),
    )
    function = run_source(expression.to_python())
    assert function(*range(1, 10)) == pytest.approx(2.0 * np.prod(np.arange(1.0, 10)))


def test_the_numpy_function_takes_frames_columns_and_scalars() -> None:
    function = EXPRESSION.to_numpy()
    assert function(ROWS) == pytest.approx(TIMES)
    assert function(**ROWS.to_dict("series")) == pytest.approx(TIMES)
    assert float(function(ROWS.iloc[1].to_dict())) == pytest.approx(TIMES[1])
    with pytest.raises(UnknownNameError):
        function(depth=3)


def test_sympy_gives_the_same_times_with_levels_as_marks() -> None:
    pytest.importorskip("sympy")
    formula = EXPRESSION.to_sympy()
    for row, time in zip(ROWS.to_dict("records"), TIMES, strict=True):
        values = {
            symbol: _mark(symbol.name, row) if "=" in symbol.name else row[symbol.name]
            for symbol in formula.free_symbols
        }
        assert float(formula.subs(values)) == pytest.approx(time, rel=1e-12)


def _mark(name: str, row: dict[str, Any]) -> int:
    parameter, level = name.split("=")
    return int(row[parameter] == level)


def test_sympy_puts_levels_in() -> None:
    pytest.importorskip("sympy")
    formula = EXPRESSION.to_sympy({"gpu": "V100", "fused": 1})
    assert {s.name for s in formula.free_symbols} == {"batch size", "depth", "n_gpus", "dropout"}
    values = {s: ROWS[s.name].iloc[1] for s in formula.free_symbols}
    assert float(formula.subs(values)) == pytest.approx(TIMES[1], rel=1e-12)
    with pytest.raises(UnknownNameError):
        EXPRESSION.to_sympy({"cpu": "x"})


def test_without_sympy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "sympy":
            raise ImportError
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"paceline\[symbolic\]"):
        EXPRESSION.to_sympy()


def test_latex_holds_the_same_numbers() -> None:
    """Every term of the LaTeX, read back as arithmetic, is the term of the expression."""
    text = EXPRESSION.to_latex(digits=15)
    row = ROWS.iloc[1]
    formula = text.split("t &= ")[1].split(r"\Bigr)")[0]
    terms = formula.split(r"\Bigl(")[1].split("&\\quad +")
    parts = EXPRESSION.components(ROWS[1:2]).iloc[0]
    shared = 1.25 / 1.1
    own = [2.0, 1.0, 1.0, 1.0]
    for term, part, factor in zip(terms, parts, own, strict=True):
        assert _read_latex(term, row) * shared * factor == pytest.approx(part, rel=1e-9)
    assert r"A\_100" in text and r"z_{\mathrm{dropout}} &= 0.9" in text


def _read_latex(term: str, row: "pd.Series[Any]") -> float:
    text = re.sub(r"\\left\(1 - \\frac\{1\}\{(.*?)\}\\right\)", r"(1 - 1/\1)", term)
    text = text.replace("\\\\\n", "").replace("\\_", "_")
    text = re.sub(r"[fz]_\{\d,\\mathrm\{.*?\}\}", "1", text)
    text = re.sub(r"\\mathrm\{(.*?)\}", lambda m: repr(float(row[m[1]])), text)
    text = text.replace(r"\times", "*").replace(r"\,", "*")
    return float(eval(re.sub(r"\^\{(.*?)\}", r"**(\1)", text)))


GENERIC = GenericExpression(
    terms=(
        Term(name="kernel size", coefficient_s=3.2e-7, power=2.1),
        Term(name="dropout", coefficient_s=0.004, power=-0.5),
        Term(name="_sum", coefficient_s=0.0, power=1.0),
    ),
    levels={"gpu": {"A_100": 0.0, "V100": 0.02}, "fused": {"0": 0.01, "1": 0.0}},
    powers={"n_gpus": -0.9, "batch": 1.0},
    base_s=0.003,
    constant_s=0.0005,
)
GENERIC_ROWS = pd.DataFrame(
    {
        "kernel size": [3.0, 5.0, 0.0],
        "dropout": [0.0, 0.5, 0.2],
        "_sum": [1.0, 2.0, 3.0],
        "gpu": ["A_100", "V100", "H100"],
        "fused": [0, 1, 1],
        "n_gpus": [1.0, 2.0, 16.0],
        "batch": [8.0, 64.0, 256.0],
    }
)


def test_python_source_of_the_generic_form_gives_the_same_times_and_imports_nothing() -> None:
    source = GENERIC.to_python()
    assert "import" not in source
    times = [run_source(source)(*row) for row in GENERIC_ROWS.itertuples(index=False)]
    assert times == pytest.approx(GENERIC.evaluate(GENERIC_ROWS), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [("dropout", -0.1, "dropout must not be negative"), ("n_gpus", 0, "n_gpus must be positive")],
)
def test_python_source_of_the_generic_form_refuses_what_the_form_does(
    name: str, value: float, rule: str
) -> None:
    row = {**GENERIC_ROWS.iloc[0].to_dict(), name: value}
    with pytest.raises(ValueError, match=rule):
        run_source(GENERIC.to_python())(*row.values())


def test_latex_of_the_generic_form_has_every_constant_that_counts() -> None:
    text = GENERIC.to_latex()
    assert text.startswith(r"\begin{aligned}") and text.endswith(r"\end{aligned}")
    assert text.count("{") == text.count("}")
    assert r"3.2 \times 10^{-7}\, \mathrm{kernel size}^{2.1}" in text
    assert r"\mathrm{n\_gpus}^{-0.9}\, \mathrm{batch} + 0.0005" in text
    assert r"0.02 & \text{V100}" in text and r"\text{A\_100}" in text
    assert r"\mathrm{\_sum}" not in text  # it costs nothing
