"""What in a fit should not be relied on."""

from __future__ import annotations

from paceline.estimators import FitResult, Stability
from paceline.units import format_percent

_UNSTABLE = 0.01
_BAD_FIT = 0.2


def warnings_of(fit: FitResult) -> tuple[str, ...]:
    """Return one sentence for everything a reader should not rely on."""
    warnings = []
    if fit.scores is not None and fit.scores.mape > _BAD_FIT:
        warnings.append(
            f"The expression is off by {format_percent(fit.scores.mape)} on rows it has not "
            f"seen: it does not describe these data, so neither do its constants. "
            f"`paceline compare` shows what would."
        )
    if fit.estimator.at_bounds_:
        warnings.append(f"At their bound: {_listed(fit.estimator.at_bounds_)}.")
    if fit.stability is None:
        warnings.append("Spread of the constants not studied (fitted with one seed).")
    else:
        warnings += _spread_warnings(fit.stability)
    if fit.scores is None:
        warnings.append("Too few rows to hold some out: the error is unknown.")
    return tuple(warnings)


def _spread_warnings(stability: Stability) -> list[str]:
    warnings = []
    unstable = tuple(
        name
        for name, s in stability.spreads.items()
        if s.seed_sd > _UNSTABLE * abs(s.seed_mean) and s.seed_sd > 0
    )
    if unstable:
        warnings.append(
            f"Differ over {stability.n_seeds} seeds of the solver: {_listed(unstable)}."
        )
    confounded = tuple(n for n, s in stability.spreads.items() if s.problem == "confounded")
    if confounded:
        warnings.append(
            f"Confounded (they can change together without changing a time): "
            f"{_listed(confounded)}."
        )
    open_ones = tuple(
        n
        for n in stability.not_identified
        if not stability.spreads[n].problem and stability.spreads[n].value
    )
    if open_ones:
        warnings.append(
            f"Not determined by the data (90 % interval wider than half the value): "
            f"{_listed(open_ones)}."
        )
    return warnings


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)
