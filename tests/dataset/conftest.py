"""Small tables to read."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import settings

from paceline.dataset import Dataset

# No time limit per example: on a busy machine it would fail now and then.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": ["a", "a", "b", "b", "c", "c"],
            "filters": [4, 8, 16, 4, 8, 16],
            "n_devices": [1, 2, 4, 8, 16, 32],
            "time_s": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        }
    )


@pytest.fixture
def dataset(frame: pd.DataFrame) -> Dataset:
    return Dataset.from_frame(frame)
