"""Facts of a fit that explanations of all forms state."""

from __future__ import annotations

from paceline.estimators import FitResult
from paceline.units import format_number, format_percent


def errors_in_words(fit: FitResult) -> tuple[str, ...]:
    """Return what is known of the error: on held-out rows, and between repeats."""
    words = []
    if fit.scores is not None:
        words.append(
            f"held-out error: mean {format_percent(fit.scores.mape)}, "
            f"median {format_percent(fit.scores.median_ape)}, "
            f"R2 {format_number(fit.scores.r2, 4)} ({fit.covers})"
        )
    if fit.noise_floor is not None:
        words.append(
            f"noise floor: repeats of one configuration differ by "
            f"{format_percent(fit.noise_floor)}, which no model can foresee"
        )
    return tuple(words)
