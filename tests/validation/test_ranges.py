from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from paceline.space import Parameter, Space
from paceline.validation import published_expression, time_range_s

SMALL = Space(
    name="small",
    parameters=(
        Parameter(name="filters", role="intrinsic", kind="numeric", values=(16, 32)),
        Parameter(name="kernel_size", role="intrinsic", kind="numeric", values=(2, 3, 5)),
        Parameter(name="learning_rate", role="intrinsic", kind="numeric", values=(0.1, 1e-6)),
        Parameter(
            name="activation",
            role="intrinsic",
            kind="categorical",
            values=("relu", "tanh", "sigmoid"),
        ),
        Parameter(name="optimizer", role="intrinsic", kind="categorical", values=("adam", "sgd")),
        Parameter(name="n_devices", role="extrinsic", kind="numeric", values=(1, 2, 3)),
        Parameter(name="device_batch", role="extrinsic", kind="numeric", values=(1, 4)),
    ),
)


@pytest.mark.parametrize("base_s", [0.0, -300.0, -2000.0])
def test_the_range_is_that_of_the_full_grid(base_s: float) -> None:
    expression = replace(published_expression("pytorch", table="5.2"), base_s=base_s)
    times_s = expression.evaluate(pd.DataFrame(SMALL.sample(None, design="grid")))
    assert time_range_s(expression, SMALL) == pytest.approx((times_s.min(), times_s.max()))


def test_the_canonical_form_has_the_same_range() -> None:
    expression = published_expression("pytorch", table="5.2")
    assert time_range_s(expression.canonical(), SMALL) == pytest.approx(
        time_range_s(expression, SMALL)
    )
