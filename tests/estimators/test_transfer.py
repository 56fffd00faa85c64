"""Times on one device from times on another."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from paceline.errors import InvalidInputError
from paceline.estimators import transfer_times


@pytest.fixture
def planted() -> tuple[pd.DataFrame, np.ndarray]:
    """Convolutions eight times as fast on the other device, memory-bound work twice as fast."""
    generator = np.random.default_rng(0)
    parts = np.exp(generator.normal(size=(120, 2)))
    frame = pd.DataFrame(parts, columns=["conv", "pool"])
    frame.insert(0, "time_s", parts.sum(axis=1))
    return frame, parts @ [1 / 8, 1 / 2]


def test_parts_that_scale_by_their_own_factors_are_found(
    planted: tuple[pd.DataFrame, np.ndarray],
) -> None:
    frame, y = planted
    got = transfer_times(frame[:40], y[:40], frame[40:])
    error = np.abs(got / y[40:] - 1)
    ratio = frame["time_s"][40:] * np.median(y[:40] / frame["time_s"][:40])
    assert error.mean() < 0.03
    assert error.mean() < 0.2 * np.abs(ratio / y[40:] - 1).mean()


def test_units_do_not_matter(planted: tuple[pd.DataFrame, np.ndarray]) -> None:
    frame, y = planted
    in_s = transfer_times(frame[:40], y[:40], frame[40:])
    in_us = transfer_times(frame[:40], y[:40] * 1e6, frame[40:])
    np.testing.assert_allclose(in_us, in_s * 1e6, rtol=1e-6)
    parts_in_us = frame.assign(conv=frame["conv"] * 1e6, pool=frame["pool"] * 1e6)
    other = transfer_times(parts_in_us[:40], y[:40], parts_in_us[40:])
    np.testing.assert_allclose(other, in_s, rtol=1e-6)


def test_the_order_of_rows_and_columns_does_not_matter(
    planted: tuple[pd.DataFrame, np.ndarray],
) -> None:
    frame, y = planted
    turned = transfer_times(frame[:40][::-1], y[:40][::-1], frame[40:][["pool", "time_s", "conv"]])
    np.testing.assert_allclose(turned, transfer_times(frame[:40], y[:40], frame[40:]), rtol=1e-6)


def test_times_alone_are_enough() -> None:
    frame = pd.DataFrame({"ms": [1.0, 2.0, 4.0, 8.0, 16.0]})
    got = transfer_times(frame[:4], [3.0, 6.0, 12.0, 24.0], frame[4:], time="ms")
    assert got == pytest.approx([48.0], rel=0.05)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": [1.0, 1.0]}, "but got 4 rows and 2 times"),
        ({"measured": pd.DataFrame({"time_s": [1.0, 2.0]}), "times": [1.0, 2.0]}, "At least 3"),
        ({"asked": pd.DataFrame({"time": [1.0]})}, "`time_s` among them"),
        ({"times": [1.0, 1.0, 1.0, 0.0]}, "positive"),
        ({"asked": pd.DataFrame({"time_s": [-1.0]})}, "-1 at the least"),
    ],
)
def test_mistakes_are_named(change: dict[str, object], message: str) -> None:
    given: dict[str, object] = {
        "measured": pd.DataFrame({"time_s": [1.0, 2.0, 3.0, 4.0]}),
        "times": [1.0, 2.0, 3.0, 4.0],
        "asked": pd.DataFrame({"time_s": [5.0]}),
        **change,
    }
    with pytest.raises(InvalidInputError, match=message):
        transfer_times(**given)  # type: ignore[arg-type]
