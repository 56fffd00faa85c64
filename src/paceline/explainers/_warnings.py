"""What in a fit should not be relied on."""

from __future__ import annotations

from paceline.estimators import FitResult, Stability

_SHOWN = 8
_UNSTABLE = 0.01


def warnings_of(fit: FitResult) -> tuple[str, ...]:
    """Return one sentence for everything a reader should not rely on."""
    warnings = []
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
    if stability.not_identified:
        warnings.append(
            f"Not determined by the data (90 % interval wider than half the value): "
            f"{_listed(stability.not_identified)}."
        )
    return warnings


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
