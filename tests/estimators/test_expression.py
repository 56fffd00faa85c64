import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InvalidInputError
from paceline.estimators import GenericExpression, Term

EXPRESSION = GenericExpression(
    terms=(
        Term(name="width", coefficient_s=2.0, power=1.5),
        Term(name="rate", coefficient_s=0.5, power=-0.3),
    ),
    levels={"optimizer": {"adam": 3.0, "sgd": 1.0}, "padding": {"same": 0.2, "valid": 0.7}},
    powers={"n_devices": -0.8},
    constant_s=4.0,
)
ROWS = pd.DataFrame(
    {
        "width": [4.0, 9.0, 1.0],
        "rate": [0.1, 0.01, 1.0],
        "optimizer": ["adam", "sgd", "adam"],
        "padding": ["same", "valid", "valid"],
        "n_devices": [1.0, 2.0, 4.0],
    }
)
coefficients = st.floats(0, 1e3)


def test_the_time_is_the_sum_in_the_brackets_times_the_scaling_plus_the_floor() -> None:
    by_hand = (2.0 * 9.0**1.5 + 0.5 * 0.01**-0.3 + 1.0 + 0.7) * 2.0**-0.8 + 4.0
    assert EXPRESSION.evaluate(ROWS)[1] == pytest.approx(by_hand, rel=1e-12)


def test_components_sum_to_the_time() -> None:
    total = EXPRESSION.canonical().components(ROWS).sum(axis=1)
    np.testing.assert_allclose(total, EXPRESSION.evaluate(ROWS), rtol=1e-12)


@given(st.lists(coefficients, min_size=5, max_size=5))
def test_conversion_between_the_forms_leaves_predictions_unchanged(values: list[float]) -> None:
    expression = GenericExpression(
        terms=EXPRESSION.terms,
        levels={
            "optimizer": {"adam": values[0], "sgd": values[1]},
            "padding": {"same": values[2], "valid": values[3]},
        },
        powers=EXPRESSION.powers,
        constant_s=values[4],
    )
    canonical = expression.canonical()
    assert all(min(group.values()) == 0 for group in canonical.levels.values())
    for converted in (canonical, canonical.redundant(), canonical.redundant().canonical()):
        np.testing.assert_allclose(converted.evaluate(ROWS), expression.evaluate(ROWS), rtol=1e-9)
    assert canonical.redundant().base_s == 0


def test_an_expression_survives_being_written_and_read() -> None:
    assert GenericExpression.from_dict(EXPRESSION.to_dict()) == EXPRESSION


def test_zero_of_something_costs_nothing_whatever_its_power() -> None:
    row = ROWS.head(1).assign(rate=0.0)
    by_hand = (2.0 * 4.0**1.5 + 3.0 + 0.2) + 4.0
    assert EXPRESSION.evaluate(row)[0] == pytest.approx(by_hand)


def test_an_unseen_level_costs_what_an_average_level_does() -> None:
    row = ROWS.head(1)
    average = (EXPRESSION.evaluate(row) + EXPRESSION.evaluate(row.assign(optimizer="sgd"))) / 2
    unseen = EXPRESSION.evaluate(row.assign(optimizer="lion"))
    np.testing.assert_allclose(unseen, average)


def test_numbers_that_are_labels_match_their_level_however_they_are_typed() -> None:
    expression = GenericExpression(levels={"fused": {"0": 1.0, "1": 2.0}}, powers={})
    for values in ([0, 1], [0.0, 1.0], ["0", "1"]):
        assert expression.evaluate(pd.DataFrame({"fused": values})).tolist() == [1.0, 2.0]


def test_a_negative_value_in_a_power_term_is_refused_with_its_row() -> None:
    with pytest.raises(InvalidInputError, match=r"`width >= 0` must hold.*row 2 has -1"):
        EXPRESSION.evaluate(ROWS.assign(width=[1.0, -1.0, 2.0]))


def test_an_extrinsic_parameter_must_be_positive() -> None:
    with pytest.raises(InvalidInputError, match=r"`n_devices > 0` must hold.*row 1 has 0"):
        EXPRESSION.evaluate(ROWS.assign(n_devices=[0.0, 1.0, 2.0]))


@given(
    st.lists(st.floats(1e-12, 1e12), min_size=4, max_size=4),
    st.lists(st.floats(-5, 5), min_size=4, max_size=4),
)
def test_predictions_are_finite_and_not_negative_within_twelve_decades(
    values: list[float], powers: list[float]
) -> None:
    expression = GenericExpression(
        terms=(
            Term(name="a", coefficient_s=1e3, power=powers[0]),
            Term(name="b", coefficient_s=1e3, power=powers[1]),
        ),
        levels={},
        powers={"m": powers[2], "n": powers[3]},
        constant_s=1e3,
    )
    time = expression.evaluate(pd.DataFrame([dict(zip("abmn", values, strict=True))]))
    assert np.isfinite(time).all() and (time >= 0).all()
