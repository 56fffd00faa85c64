"""The sections that need more than data and a model: phases, comparison, strategies, a plan."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.explainers import ImbalanceReading, PhaseExplanation
from paceline.reports._known import Known
from paceline.reports._report import Chart, Material, Section, Table
from paceline.reports.plots import (
    draw_comparison,
    draw_gantt,
    draw_phases,
    draw_plan_parts,
    draw_speedup,
    draw_survey,
    draw_workers,
)
from paceline.reports.views import (
    PlanView,
    SurveyView,
    view_phases,
    view_plan,
    view_provenance,
    view_speedup,
    view_survey,
    view_workers,
)
from paceline.units import format_number, format_percent, format_seconds

_NO_PHASES = (
    "DATA has no phases; a campaign times them with `n_phase_steps` in its table `protocol`."
)
_MOST_BARS = 24
_GIB = 2.0**30


def phases_section(known: Known) -> Section | str:
    """Return where the steps of a campaign spend their time."""
    if known.phases is None:
        return _NO_PHASES
    views = view_phases(known.phases)
    chart = Chart(
        name="phases",
        caption="Phases one after the other, mean over steps and workers, and the whole step as "
        "it is really run.",
        spec=draw_phases(views),
        numbers=[view.to_dict() for view in views],
    )
    return Section(
        name="phases", title="Phases of a step", words=_names(known.material), charts=(chart,)
    )


def _names(material: Material) -> tuple[str, ...]:
    values = material.phase_runs[0].values
    return (f"Networks are named {'/'.join(['workload', *values])}.",) if values else ()


def speedup_section(known: Known) -> Section | str:
    """Return measured and predicted speedup."""
    if known.phases is None:
        return _NO_PHASES
    views = view_speedup(known.phases)
    if not views:
        return "Speedup needs runs on one and on several workers with the same device batch."
    chart = Chart(
        name="speedup",
        caption="Weak scaling (3.6): measured, and predicted from the phases with only that "
        "part of the aggregation which is not hidden.",
        spec=draw_speedup(views),
        numbers=[view.to_dict() for view in views],
    )
    return Section(name="speedup", title="Speedup", charts=(chart,))


def imbalance_section(known: Known) -> Section | str:
    """Return how unequal workers are, and where that arises."""
    views = view_workers(known.material.phase_runs)
    if known.phases is None or not views:
        return "Imbalance needs runs on several workers with phases."
    shown = views[:_MOST_BARS]
    more = f" The first {len(shown)} of {len(views)} workers." if len(shown) < len(views) else ""
    chart = Chart(
        name="imbalance",
        caption=f"What every worker spends in a step, by phase, mean over steps.{more}",
        spec=draw_workers(shown),
        numbers=[view.to_dict() for view in views],
    )
    rows = tuple(_imbalance_rows(known.phases))
    header = ("network", "framework", "workers", "life", "LIF", "waiting", "where it arises")
    return Section(
        name="imbalance",
        title="Load imbalance",
        words=("LIF is the slowest worker's own work over the mean (3.8): 1 is perfect balance.",),
        charts=(chart,),
        tables=(Table(header=header, rows=rows, left=2),),
    )


def _imbalance_rows(explanation: PhaseExplanation) -> Iterator[tuple[str, ...]]:
    lives: dict[tuple[str, str, int], int] = {}
    for key, reading in explanation.imbalance:
        lives[key] = lives.get(key, 0) + 1
        head = (key[0], key[1], str(key[2]), str(lives[key]))
        if isinstance(reading, ImbalanceReading):
            waiting = format_percent(reading.waiting_share)
            yield (*head, format_number(reading.lif, 4), waiting, reading.sentences[0])
        else:
            yield (*head, "", "", reading)


def comparison_section(known: Known) -> Section | str:
    """Return every form and black box on the same folds."""
    found = known.material.comparison
    if found is None:
        return "Not asked for: it takes long. Write the report with --compare."
    rows = []
    for row in found.rows:
        if row.scores is None:
            rows.append((row.name, "failed", "", "", "", "", row.error))
            continue
        covered = "" if row.coverage is None else format_percent(row.coverage, 3)
        rows.append(
            (
                row.name,
                format_percent(row.scores.mape, 3),
                format_percent(row.scores.median_ape, 3),
                format_seconds(row.scores.mae_s),
                format_number(row.scores.r2, 4),
                covered,
                format_seconds(row.fit_seconds, 2),
            )
        )
    header = ("form", "mean error", "median", "MAE", "R²", "interval covers", "one fit")
    floor = " The dashed line is the noise floor." if found.floor is not None else ""
    chart = Chart(
        name="comparison",
        caption=f"{found.n_rows} rows; {found.split}.{floor}",
        spec=draw_comparison(found),
        numbers=found.to_dict(),
    )
    return Section(
        name="comparison",
        title="Comparison of models",
        charts=(chart,),
        tables=(Table(header=header, rows=tuple(rows)),),
    )


def survey_section(known: Known) -> Section | str:
    """Return what the oracle says of every strategy."""
    if known.material.survey is None:
        return "No cluster was named. Write the report with --cluster, for a known workload."
    view = view_survey(known.material.survey)
    chart = Chart(
        name="strategies",
        caption=f"{view.workload}{_taken(view)} on {view.cluster}, from first principles: the "
        "best of every strategy. Crosses do not fit; the dashed line is the memory of a "
        f"{view.device}.",
        spec=draw_survey(view),
        numbers=view.to_dict(),
    )
    header = ("devices", "best that fits", "degrees", "step", "samples/s", "memory", "limited by")
    return Section(
        name="strategies",
        title="Strategies on a cluster",
        charts=(chart,),
        tables=(Table(header=header, rows=tuple(_best_rows(view)), left=3),),
    )


def _taken(view: SurveyView) -> str:
    values = ", ".join(f"{name} {value}" for name, value in view.values.items())
    return f" ({values})" if values else ""


def _best_rows(view: SurveyView) -> Iterator[tuple[str, ...]]:
    for p in sorted(view.points, key=lambda p: p.n_devices):
        if p.is_best and p.step_s is not None:
            memory = f"{format_number((p.memory_bytes or 0.0) / _GIB, 3)} GiB"
            rate = format_number(p.samples_per_s or 0.0, 4)
            step = format_seconds(p.step_s)
            yield (str(p.n_devices), p.strategy, p.degrees, step, rate, memory, p.limit)


def plan_section(known: Known) -> Section | str:
    """Return a plan with its parts and the passes of its pipeline."""
    if known.material.plan is None:
        return "No plan was given. Make one with `paceline plan`."
    view = view_plan(known.material.plan, known.material.plan_run)
    charts = [
        Chart(
            name="plan-parts",
            caption=f"Parts of the predicted step of {format_seconds(view.step_s)}.",
            spec=draw_plan_parts(view),
            numbers=view.to_dict(),
        )
    ]
    if view.passes:
        bubble = format_percent(view.bubble_share or 0.0)
        charts.append(
            Chart(
                name="plan-gantt",
                caption=f"One predicted step of the first replica, pass by pass; stages wait in "
                f"{bubble} of the time.",
                spec=draw_gantt(view),
                numbers=view.to_dict()["passes"],
            )
        )
    return Section(
        name="plan",
        title="The plan",
        words=(_plan_words(view),),
        charts=tuple(charts),
        tables=tuple(_plan_tables(view)),
        notes=view.reasons,
    )


def _plan_words(view: PlanView) -> str:
    memory = ""
    if view.memory_bytes is not None:
        memory = f", {format_number(view.memory_bytes / _GIB, 3)} GiB on the fullest device"
    return (
        f"{view.strategy} on {view.n_devices} devices of {view.cluster}, global batch "
        f"{view.global_batch}, chosen as {view.objective}: {format_seconds(view.step_s)} a "
        f"step{memory}."
    )


def _plan_tables(view: PlanView) -> Iterator[Table]:
    stages = tuple(
        (stage["name"], stage["layers"], ", ".join(map(str, stage["devices"])))
        for stage in view.stages
    )
    yield Table(header=("stage", "layers", "devices"), rows=stages, left=3, caption="Stages")
    others = tuple(
        (
            str(other.get("strategy", "")),
            format_seconds(float(other["step_s"])),
            f"+ {format_percent(float(other['behind']))}" if "behind" in other else "",
        )
        for other in view.runners_up
        if "step_s" in other
    )
    if others:
        header = ("runner-up", "step", "behind by")
        yield Table(header=header, rows=others, caption="Runners-up")


def provenance_section(known: Known) -> Section | str:
    """Return where the numbers come from."""
    rows = tuple(view_provenance(known.dataset, known.fit).items())
    return Section(
        name="provenance",
        title="Provenance",
        tables=(Table(header=("what", "value"), rows=rows, left=2),),
        notes=tuple(dict.fromkeys((*known.dataset.notes, *known.fit.notes))),
    )
