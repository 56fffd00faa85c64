"""The verb `report`: everything that is known, as sections of words, tables and charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.dataset import Dataset, write_text
from paceline.errors import InvalidInputError
from paceline.estimators import Comparison, FitResult
from paceline.measurement import PhaseRun
from paceline.oracle import PipelineRun, Survey
from paceline.scenario import Plan

_SENTENCE = 32  # letters


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture: Plotly's figure as plain data, and the numbers that it shows.

    Parameters
    ----------
    name
        A word for files and links.
    caption
        What is to be seen.
    spec
        ``data`` and ``layout``.
    numbers
        The view behind it, as plain data.
    """

    name: str
    caption: str
    spec: Mapping[str, Any]
    numbers: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of text; the first `left` columns are words, the others numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    caption: str = ""

    def is_number(self, column: int) -> bool:
        """Return whether a column is set to the right; sentences never are."""
        long = any(len(row[column]) > _SENTENCE for row in self.rows)
        return column >= self.left and not long


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report.

    Parameters
    ----------
    name, title
        A word for links, and the heading.
    words
        Sentences above the pictures.
    formula
        MathML, which is put in as it is; every name in it is escaped already.
    listings
        Titles with text in a language, folded.
    charts, tables
        What is shown.
    notes
        Sentences below, as a list.
    """

    name: str
    title: str
    words: tuple[str, ...] = ()
    formula: str = ""
    listings: tuple[tuple[str, str], ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report, ready to be written as one HTML file.

    Parameters
    ----------
    title
        The heading.
    facts
        The few figures that a reader wants first.
    sections
        What is shown, in order.
    left_out
        What is not shown, and why.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    left_out: tuple[tuple[str, str], ...] = field(default=())

    def __str__(self) -> str:
        n_charts = sum(len(section.charts) for section in self.sections)
        return f"{self.title}: {len(self.sections)} sections, {n_charts} charts"

    def to_html(self) -> str:
        """Return the report as one page that needs nothing else."""
        from paceline.reports._html import render

        return render(self)

    def save(self, path: str | Path) -> None:
        """Write the page, whole or not at all."""
        write_text(path, self.to_html())

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of all charts by name."""
        return {chart.name: chart.numbers for section in self.sections for chart in section.charts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All that a report is made of; what is None was not given."""

    dataset: Dataset
    fit: FitResult
    plan: Plan | None = None
    plan_run: PipelineRun | None = None
    phase_runs: Sequence[PhaseRun] = ()
    comparison: Comparison | None = None
    survey: Survey | None = None


def report(
    dataset: Dataset,
    fit: FitResult,
    plan: Plan | None = None,
    *,
    plan_run: PipelineRun | None = None,
    phase_runs: Sequence[PhaseRun] = (),
    comparison: Comparison | None = None,
    survey: Survey | None = None,
    title: str = "",
) -> Report:
    """Show everything that is known of a study.

    Parameters
    ----------
    dataset, fit
        What was measured, and the model; the dataset must have the model's parameters.
    plan, plan_run
        A plan, and when its passes run as `paceline.planners.predicted_run` says.
    phase_runs
        Runs with phases, as `paceline.measurement.load_phase_runs` gives them.
    comparison
        What `compare` found.
    survey
        Strategies on a cluster, as `paceline.oracle.survey` gives them.
    title
        The heading; empty: made from where the data come from.

    Returns
    -------
    Report
        Write it with ``save("report.html")``.
    """
    from paceline.reports._sections import build_sections

    if not isinstance(dataset, Dataset) or not isinstance(fit, FitResult):
        raise InvalidInputError(
            f"A report is of a dataset and a fit, but got {type(dataset).__name__} and "
            f"{type(fit).__name__}. Load them with `load_dataset` and `load_fit`."
        )
    material = Material(
        dataset=dataset,
        fit=fit,
        plan=plan,
        plan_run=plan_run,
        phase_runs=phase_runs,
        comparison=comparison,
        survey=survey,
    )
    sections, left_out = build_sections(material)
    return Report(
        title=title or _title(dataset),
        facts=tuple(_facts(material)),
        sections=sections,
        left_out=left_out,
    )


def _title(dataset: Dataset) -> str:
    about = dataset.provenance
    return f"Report of {about.get('study') or about.get('file') or 'a study'}"


def _facts(material: Material) -> Iterator[tuple[str, str]]:
    from paceline.units import format_percent

    fit = material.fit
    yield "rows", f"{material.dataset.n_rows}"
    yield "form of the model", fit.form
    if fit.scores is not None:
        yield "held-out error", format_percent(fit.scores.mape, 3)
    if fit.noise_floor is not None:
        yield "noise floor", format_percent(fit.noise_floor, 3)
    yield "basis", str(fit.basis)
