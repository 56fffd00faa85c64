"""What a time is the time of."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from paceline.dataset import TimeBasis
from paceline.errors import InvalidInputError


@pytest.mark.parametrize(
    ("time_per", "batch", "power"),
    [
        ("step", "global_batch", -1.0),
        ("step", "device_batch", 0.0),
        ("step", None, None),
        ("epoch", "global_batch", -1.0),
        ("epoch", "device_batch", -1.0),
        ("epoch", None, -1.0),
        ("sample", "device_batch", -1.0),
        ("sample", None, -1.0),
        (None, "global_batch", None),
        (None, "device_batch", None),
        (None, None, None),
    ],
)
def test_the_ideal_device_power_follows_from_the_basis(
    time_per: Any, batch: Any, power: float | None
) -> None:
    assert TimeBasis(time_per=time_per, batch=batch).ideal_device_power == power


@pytest.mark.parametrize(
    ("time_per", "batch", "words"),
    [
        ("step", "device_batch", "time per step at fixed device batch"),
        ("epoch", "global_batch", "time per epoch at fixed global batch"),
        ("step", None, "time per step, batch unknown"),
        (None, "device_batch", "time of unknown basis at fixed device batch"),
        (None, None, "time of unknown basis"),
    ],
)
def test_a_basis_prints_in_words(time_per: Any, batch: Any, words: str) -> None:
    assert str(TimeBasis(time_per=time_per, batch=batch)) == words


@pytest.mark.parametrize(
    "basis",
    [
        TimeBasis(time_per=time_per, batch=batch)
        for time_per, batch in product(
            (None, "step", "epoch", "sample"), (None, "global_batch", "device_batch")
        )
    ],
)
def test_plain_data_give_an_equal_basis_back(basis: TimeBasis) -> None:
    assert TimeBasis.from_dict(basis.to_dict()) == basis


@pytest.mark.parametrize("field", ["time_per", "batch"])
def test_an_unknown_basis_is_refused(field: str) -> None:
    with pytest.raises(InvalidInputError, match=f"`{field}` must be one of .* but got 'week'"):
        TimeBasis(**{field: "week"})  # type: ignore[arg-type]
