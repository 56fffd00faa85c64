"""The sections of a report, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators import Spread
from paceline.explainers import PosynomialExplanation, ScalingReading, TermReading, explain
from paceline.reports._mathml import level_table, typeset
from paceline.reports._report import Chart, Material, Section, Table
from paceline.reports._sections_more import (
    comparison_section,
    imbalance_section,
    phases_section,
    plan_section,
    provenance_section,
    speedup_section,
    survey_section,
)
from paceline.reports.plots import (
    draw_agreement,
    draw_front,
    draw_path,
    draw_residuals,
    draw_scaling,
    draw_shares,
    draw_stability,
)
from paceline.reports.views import (
    Agreement,
    ScalingCurve,
    predict_rows,
    view_agreement,
    view_front,
    view_path,
    view_residuals,
    view_scaling,
    view_shares,
    view_stability,
)
from paceline.units import format_number, format_percent

LeftOut = tuple[str, str]
_MOST_ROWS = 40


def build_sections(material: Material) -> tuple[tuple[Section, ...], tuple[LeftOut, ...]]:
    """Return the sections of a report, and what is left out with the reason."""
    known = Known(material)
    sections: list[Section] = []
    left_out: list[LeftOut] = []
    for title, make in _MAKERS.items():
        try:
            found = make(known)
        except InvalidInputError as error:  # the rest of the report is still worth reading
            found = str(error)
        if isinstance(found, Section):
            sections.append(found)
        else:
            left_out.append((title, found))
    return tuple(sections), tuple(left_out)


class Known:
    """The material with what several sections need, worked out once."""

    def __init__(self, material: Material) -> None:
        self.material = material
        self.dataset, self.fit = material.dataset, material.fit
        self.rows: pd.DataFrame = predict_rows(self.dataset, self.fit)
        self.explanation = explain(self.fit)
        per = self.fit.basis.time_per
        self.time = f"time per {per}" if per else "time"


def formula_section(known: Known) -> Section | str:
    """Return the expression, typeset, with what it means."""
    expression = known.fit.estimator.expression_
    levels = level_table(expression)
    tables = [Table(header=levels[0], rows=levels[1], left=2, caption="Levels")] if levels else []
    return Section(
        name="formula",
        title="The formula",
        words=known.explanation.facts,
        formula=typeset(expression),
        listings=(("LaTeX", expression.to_latex()), ("Python", expression.to_python())),
        tables=(*_readings(known), *tables),
        notes=tuple(_formula_notes(known)),
    )


def _formula_notes(known: Known) -> list[str]:
    expression = known.fit.estimator.expression_
    notes = []
    for name, factor in getattr(expression, "zero_factors", {}).items():
        stand_in = format_number(expression.stand_ins[name], 3)
        notes.append(
            f"{name} = 0 counts as {stand_in} and multiplies the time by "
            f"{format_number(factor, 3)}."
        )
    correction = getattr(known.explanation, "correction", None)
    return notes + list(correction.words if correction is not None else ())


def _readings(known: Known) -> list[Table]:
    """Return what every parameter does, in words."""
    told = known.explanation
    if isinstance(told, PosynomialExplanation):
        rows = [
            (d.name, format_number(d.elasticity, 2), f"× {format_number(d.factor, 3)}")
            for d in told.doublings
        ]
        header = ("parameter", "power at the typical point", "when it doubles, the time is")
        return [Table(header=header, rows=tuple(rows), caption="What doubling does")]
    readings: list[TermReading | ScalingReading] = [*told.terms, *told.scaling]
    rows = [(r.name, format_number(r.power), r.words) for r in readings]
    header = ("parameter", "power", "what it does")
    return [Table(header=header, rows=tuple(rows), caption="What every parameter does", left=3)]


def shares_section(known: Known) -> Section | str:
    """Return where the time goes."""
    views = view_shares(known.explanation)
    if not views:
        return "The model does not say what its summands are."
    point = ", ".join(f"{n} {_value(v)}" for n, v in known.explanation.point.items())
    words = [f"{view.name}: {view.label}." for view in views if view.name != view.label]
    chart = Chart(
        name="shares",
        caption=f"Share of every summand. Typical point: {point}.",
        spec=draw_shares(views),
        numbers=[_as_dict(view) for view in views],
    )
    return Section(name="shares", title="Where the time goes", words=tuple(words), charts=(chart,))


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
            "per term" if view.owns_levels else "shared",
            str(view.n_constants),
            "unknown" if view.error is None else format_percent(view.error, 3),
        )
        for view in views
    )
    header = ("", "terms", "levels", "constants", "held-out error")
    chart = Chart(
        name="front",
        caption="Error on rows not seen against the size of the expression; bars are one "
        "standard error.",
        spec=draw_front(views),
        numbers=[_as_dict(view) for view in views],
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


def agreement_section(known: Known) -> Section | str:
    """Return predicted against measured."""
    view = view_agreement(known.dataset, known.fit, known.rows)
    chart = Chart(
        name="agreement",
        caption=f"{len(view.measured_s)} of {view.n_rows} rows, both axes logarithmic."
        if len(view.measured_s) < view.n_rows
        else f"All {view.n_rows} rows, both axes logarithmic.",
        spec=draw_agreement(view, known.time),
        numbers=view.to_dict(),
    )
    return Section(
        name="agreement",
        title="Predicted against measured",
        words=tuple(_agreement_words(view)),
        charts=(chart,),
    )


def _agreement_words(view: Agreement) -> list[str]:
    rows = "the rows that were fitted" if view.is_fitted else "these rows"
    words = [
        f"On {rows} the mean error is {format_percent(view.scores.mape, 3)}, the median "
        f"{format_percent(view.scores.median_ape, 3)}, R² {format_number(view.scores.r2, 4)}."
    ]
    if view.held_out is not None:
        words.append(
            f"On rows held out of the fit it is {format_percent(view.held_out.mape, 3)}: "
            "that is what to expect of new ones."
        )
    if view.noise_floor is not None:
        words.append(
            f"Repeats of one configuration differ by {format_percent(view.noise_floor, 3)}; no "
            "model can be expected to do better."
        )
    if view.covered is not None:
        words.append(f"{format_percent(view.covered, 3)} lie within their 90 % interval.")
    return words


def residuals_section(known: Known) -> Section | str:
    """Return the residuals along every parameter."""
    views = [v for v in view_residuals(known.dataset, known.fit, known.rows) if len(v.groups) > 1]
    if not views:
        return "No parameter has two values in these rows."
    worst = views[0]
    chart = Chart(
        name="residuals",
        caption="Boxes hold half of the rows with like values, whiskers 90 %. A model that "
        "misses nothing has all boxes around zero.",
        spec=draw_residuals(views),
        numbers=[view.to_dict() for view in views],
    )
    words = f"The medians lie furthest apart along {worst.name}: {format_percent(worst.reach)}."
    return Section(
        name="residuals", title="Residuals by parameter", words=(words,), charts=(chart,)
    )


def scaling_section(known: Known) -> Section | str:
    """Return the scaling curves."""
    views = view_scaling(known.dataset, known.fit, rows=known.rows)
    if not views:
        return "No numeric parameter is extrinsic, so nothing says how the job is scaled."
    charts = tuple(
        Chart(
            name=f"scaling-{i}",
            caption=_scaling_caption(view),
            spec=draw_scaling(view, known.time),
            numbers=view.to_dict(),
        )
        for i, view in enumerate(views, 1)
    )
    words = [text for view in views for text in _knee_words(view)]
    return Section(name="scaling", title="Scaling", words=tuple(words), charts=charts)


def _scaling_caption(view: ScalingCurve) -> str:
    point = ", ".join(f"{n} {_value(v)}" for n, v in view.point.items())
    shade = ""
    if view.values[-1] > view.measured_to:
        shade = f" Shaded: beyond what was measured ({_value(view.measured_to)})."
    return f"Along {view.name}, all else at: {point or 'nothing else'}.{shade}"


def _knee_words(view: ScalingCurve) -> list[str]:
    if view.knee is None:
        return []
    if not view.knee.is_reached:
        return [f"Every doubling up to {view.knee.n_devices} {view.name} gains at least 10 %."]
    return [
        f"Knee: beyond {view.knee.n_devices} {view.name} a further doubling gains less than 10 % "
        f"({format_percent(view.knee.gain)})."
    ]


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


def warnings_section(known: Known) -> Section | str:
    """Return what not to rely on."""
    notes = known.explanation.warnings
    words = () if notes else ("Nothing known speaks against it within the measured range.",)
    return Section(name="warnings", title="What not to rely on", words=words, notes=notes)


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else format_number(value, 6)


def _as_dict(view: Any) -> dict[str, Any]:
    return {name: getattr(view, name) for name in view.__slots__}


_MAKERS: dict[str, Callable[[Known], Section | str]] = {
    "The formula": formula_section,
    "Where the time goes": shares_section,
    "What not to rely on": warnings_section,
    "Predicted against measured": agreement_section,
    "Residuals by parameter": residuals_section,
    "Scaling": scaling_section,
    "Formulas that were tried": front_section,
    "Constants against the penalty": path_section,
    "Stability of the constants": stability_section,
    "Phases of a step": lambda known: phases_section(known.material),
    "Speedup": lambda known: speedup_section(known.material),
    "Load imbalance": lambda known: imbalance_section(known.material),
    "Comparison of models": lambda known: comparison_section(known.material),
    "Strategies on a cluster": lambda known: survey_section(known.material),
    "The plan": lambda known: plan_section(known.material),
    "Provenance": lambda known: provenance_section(known.material),
}
