"""The sections that say how a formula was found, and how far its constants can be trusted."""

from __future__ import annotations

from paceline.estimators import Spread
from paceline.reports._known import Known, plain_view
from paceline.reports._report import Chart, Section, Table
from paceline.reports.plots import draw_front, draw_path, draw_stability
from paceline.reports.views import view_front, view_path, view_stability
from paceline.units import format_number, format_percent

_MOST_ROWS = 40


def front_section(known: Known) -> Section | str:
    """Return the expressions that were tried."""
    views = view_front(known.fit)
    if not views:
        return f"The {known.fit.form} form has one expression, not a front of them."
    if all(view.error is None for view in views):
        return "No rows could be held out to judge the expressions by."
    rows = tuple(
        (
            "chosen" if view.is_chosen else "",
            str(view.n_terms),
            str(view.n_constants),
            "unknown" if view.error is None else format_percent(view.error, 3),
        )
        for view in views
    )
    header = ("", "terms", "constants", "held-out error")
    chart = Chart(
        name="front",
        caption="Error on rows not seen against the size of the expression; bars are one "
        "standard error.",
        spec=draw_front(views),
        numbers=[plain_view(view) for view in views],
    )
    words = ("The simplest within one standard error of the best is chosen; another is fitted "
             "with --terms K.",)  # fmt: skip
    return Section(
        name="front",
        title="Formulas that were tried",
        words=words,
        charts=(chart,),
        tables=(Table(header=header, rows=rows, left=3),),
    )


def path_section(known: Known) -> Section | str:
    """Return constants and R² against the strength of the penalty."""
    if known.fit.form != "generic":
        return f"A path against λ is of the generic form; this model is {known.fit.form}."
    own = known.fit.estimator.penalty
    penalties = [own] if own != "none" else ["l1", "l2"]
    views = [view_path(known.dataset, known.fit, penalty=penalty) for penalty in penalties]
    charts = tuple(
        Chart(
            name=f"path-{view.penalty}",
            caption=f"{view.penalty.upper()}: shares of the summands, powers, and R² of the "
            f"{view.n_rows} rows fitted; the JSON has every constant.",
            spec=draw_path(view),
            numbers=view.to_dict(),
        )
        for view in views
    )
    return Section(name="paths", title="Constants against the penalty", charts=charts)


def stability_section(known: Known) -> Section | str:
    """Return how far every constant can be trusted."""
    view = view_stability(known.fit)
    if view is None:
        why = (
            "fit it with --seeds 10"
            if known.fit.form == "generic"
            else "it is of the generic form"
        )
        return f"The spread of the constants was not studied: {why}."
    rows = tuple(
        (
            name,
            format_number(s.value, 4),
            format_number(s.seed_sd, 2),
            f"{format_number(s.low, 3)} to {format_number(s.high, 3)}",
            _verdict(s),
        )
        for name, s in list(view.spreads.items())[:_MOST_ROWS]
    )
    header = ("constant", "value", "sd over seeds", "90 % interval of the data", "verdict")
    chart = Chart(
        name="stability",
        caption="Spread of every constant relative to its value; bars that reach beyond ± 25 % "
        "are not determined by the data.",
        spec=draw_stability(view),
        numbers=view.to_dict(),
    )
    return Section(
        name="stability",
        title="Stability of the constants",
        charts=(chart,),
        tables=(Table(header=header, rows=rows),),
    )


def _verdict(spread: Spread) -> str:
    if spread.value == spread.low == spread.high == 0:
        return "0 by definition"
    return spread.problem or ("determined" if spread.is_identified else "not determined")
