"""The sections of a report, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Callable

from paceline.errors import InvalidInputError
from paceline.explainers import (
    PosynomialExplanation,
    ScalingReading,
    TermReading,
    zero_sentences,
)
from paceline.reports._known import Known, plain_view
from paceline.reports._mathml import level_table, typeset
from paceline.reports._report import Chart, Material, Section, Table
from paceline.reports._sections_fit import front_section, path_section, stability_section
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
    draw_residuals,
    draw_scaling,
    draw_shares,
)
from paceline.reports.views import (
    Agreement,
    ScalingCurve,
    view_agreement,
    view_residuals,
    view_scaling,
    view_shares,
)
from paceline.units import format_number, format_percent

LeftOut = tuple[str, str]


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
    is_posynomial = isinstance(known.explanation, PosynomialExplanation)
    notes = zero_sentences(expression) if is_posynomial else []
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
        numbers=[plain_view(view) for view in views],
    )
    return Section(name="shares", title="Where the time goes", words=tuple(words), charts=(chart,))


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
    spec = draw_residuals(views)
    most = len(spec["data"])
    some = f" The {most} of {len(views)} that it misses most." if most < len(views) else ""
    chart = Chart(
        name="residuals",
        caption="Boxes hold half of the rows with like values, whiskers 90 %. A model that "
        f"misses nothing has all boxes around zero.{some}",
        spec=spec,
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
        return [
            f"Up to {view.knee.n_devices} {view.name}, the most shown, more gain at least 10 % "
            "for every doubling."
        ]
    return [
        f"Knee: beyond {view.knee.n_devices} {view.name} a further doubling gains less than 10 % "
        f"({format_percent(view.knee.gain)})."
    ]


def warnings_section(known: Known) -> Section | str:
    """Return what not to rely on."""
    notes = known.explanation.warnings
    words = () if notes else ("Nothing known speaks against it within the measured range.",)
    return Section(name="warnings", title="What not to rely on", words=words, notes=notes)


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else format_number(value, 6)


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
    "Phases of a step": phases_section,
    "Speedup": speedup_section,
    "Load imbalance": imbalance_section,
    "Comparison of models": comparison_section,
    "Strategies on a cluster": survey_section,
    "The plan": plan_section,
    "Provenance": provenance_section,
}
