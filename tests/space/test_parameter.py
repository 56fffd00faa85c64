"""What a parameter may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.space import Parameter

GOOD: dict[str, Any] = {
    "name": "filters",
    "role": "intrinsic",
    "kind": "numeric",
    "values": (4, 8, 16),
}


def test_a_parameter_keeps_its_values_in_order() -> None:
    assert Parameter(**{**GOOD, "values": [8, 4, 0.5]}).values == (8, 4, 0.5)


def test_numpy_numbers_become_plain_numbers() -> None:
    values = Parameter(**{**GOOD, "values": np.array([1, 2])}).values
    assert [type(value) for value in values] == [int, int]
    assert type(Parameter(**{**GOOD, "values": [np.float32(0.5)]}).values[0]) is float


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "", "`name` must be a text, but got ''"),
        ("role", "inner", "intrinsic or extrinsic, but got 'inner'"),
        ("kind", "ordinal", "numeric or categorical, but got 'ordinal'"),
        ("values", (), "must not be empty"),
        ("values", (1, 2, 1), "must differ from each other, but got 1 twice"),
        ("values", (1, 1.0), "but got 1 twice"),
        ("values", (1, float("nan")), "finite numbers, but got nan"),
        ("values", (1, float("inf")), "finite numbers, but got inf"),
        ("values", (1, "2"), "finite numbers, but got '2'"),
        ("values", (True,), "finite numbers, but got True"),
        ("values", "abc", "must be a list, but got 'abc'"),
        ("values", 3, "must be a list, but got 3"),
        ("unit", 3, "must be a text, but got 3"),
    ],
)
def test_a_broken_rule_is_named_with_what_was_got(field: str, value: object, words: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Parameter(**{**GOOD, field: value})
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")


def test_categorical_values_must_be_texts() -> None:
    with pytest.raises(InvalidInputError, match="must be texts, but got 1"):
        Parameter(name="a", role="intrinsic", kind="categorical", values=("x", 1))  # type: ignore[arg-type]


def test_an_extrinsic_parameter_must_be_numeric() -> None:
    with pytest.raises(InvalidInputError, match="extrinsic parameter must be numeric"):
        Parameter(name="a", role="extrinsic", kind="categorical", values=("x",))


def test_plain_data_give_an_equal_parameter_back() -> None:
    parameter = Parameter(**GOOD, unit="filters")
    assert Parameter.from_dict(parameter.to_dict()) == parameter


def test_plain_data_with_a_misspelt_field_name_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'values'"):
        Parameter.from_dict({**GOOD, "value": [1]})


def test_plain_data_without_a_field_say_which() -> None:
    with pytest.raises(InvalidInputError, match="must have the field `role`"):
        Parameter.from_dict({"name": "a", "kind": "numeric", "values": [1]})


def test_a_parameter_prints_on_one_line() -> None:
    assert str(Parameter(**GOOD, unit="px")) == "filters (intrinsic): 4, 8, 16 px"
