"""The error that even a perfect model would have: what repeats of the same trial differ by."""

from __future__ import annotations

from pathlib import Path

from paceline.dataset import read_store
from paceline.estimators import noise_floor as floor_of


def noise_floor(path: str | Path) -> float | None:
    """Return the noise floor of a campaign, as a share of the time.

    Parameters
    ----------
    path
        The store of a campaign.

    Returns
    -------
    float or None
        Mean absolute deviation of trials that were measured again later, in other processes;
        None when none were.
    """
    dataset = read_store(path)
    return floor_of(dataset.y, dataset.groups())
