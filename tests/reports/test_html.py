"""The report is one page that needs nothing else, shows everything and runs no name."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.reports.conftest import LEVEL, SCRIPT, planted
from tests.reports.test_views import small_plan

import paceline
from paceline.clusters import load_cluster
from paceline.dataset import Dataset
from paceline.estimators import FitResult, compare, fit
from paceline.measurement import PhaseRun
from paceline.oracle import simulate, survey
from paceline.reports import Report, plots, report, save_scaling_images, views
from paceline.workloads import load_workload

ALWAYS = {"formula", "shares", "warnings", "agreement", "residuals", "scaling", "provenance"}
SECTIONS = {
    "generic": ALWAYS | {"paths", "stability"},
    "posynomial": ALWAYS | {"front"},
    "corrected": ALWAYS | {"front"},
}


class Page(HTMLParser):
    """What a browser would find: elements, addresses and the data in scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.data: dict[str, Any] = {}
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self._script: str | None = None
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        self.addresses += [str(given[n]) for n in ("src", "href", "action") if n in given]
        self.handlers += [name for name in given if name.startswith("on")]
        if "id" in given:
            self.ids.append(str(given["id"]))
        if tag == "script":
            self._script = str(given.get("id", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is None:
            self.text += data
        elif self._script:
            self.data[self._script] = json.loads(data)
        else:
            self.scripts.append(data)


@pytest.mark.parametrize("form", SECTIONS)
def test_every_section_is_there_or_says_why_not(
    form: str, dataset: Dataset, fits: dict[str, FitResult]
) -> None:
    made = report(dataset, fits[form])
    assert {section.name for section in made.sections} == SECTIONS[form]
    assert len(made.left_out) + len(made.sections) == 16
    page = Page(made.to_html())
    assert SECTIONS[form] <= set(page.ids) and len(set(page.ids)) == len(page.ids)
    assert all(why in page.text for _, why in made.left_out)


def test_a_report_of_all_there_is_has_all_sections(
    dataset: Dataset,
    fits: dict[str, FitResult],
    phases: tuple[Path, tuple[PhaseRun, ...]],
) -> None:
    run = simulate("gpipe", [1e-3, 2e-3], [2e-3, 4e-3], n_micro_batches=4)
    made = report(
        dataset,
        fits["posynomial"],
        small_plan(),
        plan_run=run,
        phase_runs=phases[1],
        comparison=compare(dataset, n_folds=2, members=_few_members()),
        survey=survey(
            load_workload("lenet5").graph(), load_cluster("abci"), [1, 2], device_batch=8
        ),
        title="Everything",
    )
    names = {section.name for section in made.sections}
    assert {"phases", "speedup", "imbalance", "comparison", "strategies", "plan"} <= names
    page = Page(made.to_html())
    assert "Worker 1 spends" in page.text and "It is the fastest." in page.text
    assert len(page.data["spec-plan-gantt"]["data"]) == 2
    assert str(made).startswith("Everything: 14 sections")


def _few_members() -> Any:
    from paceline.estimators import default_members

    known = default_members()
    return {name: known[name] for name in ("power-law", "extra-p")}


@pytest.fixture(scope="module")
def page(dataset: Dataset, fits: dict[str, FitResult]) -> Page:
    return Page(report(dataset, fits["generic"]).to_html())


def test_nothing_is_fetched_and_the_policy_forbids_it(
    page: Page, dataset: Dataset, fits: dict[str, FitResult]
) -> None:
    assert all(address.startswith("#") for address in page.addresses)
    assert not {"link", "iframe", "img", "object", "embed"} & set(page.tags)
    text = report(dataset, fits["generic"]).to_html()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert "default-src &#39;none&#39;" in policy and "unsafe-eval" not in policy
    assert "script-src &#39;sha256-" in policy and "http" not in policy


def test_every_chart_can_be_taken_as_json_with_its_numbers(page: Page) -> None:
    charts = [name for name in page.ids if name.startswith("chart-")]
    assert len(charts) >= 7
    for chart in charts:
        name = chart.removeprefix("chart-")
        assert page.data[f"spec-{name}"]["data"] and page.data[f"numbers-{name}"]


def test_every_axis_of_numbers_has_a_title_with_its_unit(page: Page) -> None:
    without = []
    for name, spec in page.data.items():
        if not name.startswith("spec-") or name == "spec-residuals":
            continue
        for key, axis in spec["layout"].items():
            if re.fullmatch(r"[xy]axis\d*", key) and axis.get("type") != "category":
                without += [] if axis.get("title", {}).get("text") else [(name, key)]
    assert not without
    titles = json.dumps([s["layout"] for n, s in page.data.items() if n.startswith("spec-")])
    for title in ("(ms)", "share of the time (%)", "R\\u00b2", "(number of devices)"):
        assert title in titles


def test_script_in_a_name_or_a_level_is_shown_as_text() -> None:
    dataset = planted(60, layers=SCRIPT, level=LEVEL)
    for form in ("generic", "posynomial"):
        found = fit(dataset, form=form, n_seeds=2, n_bootstrap=2)
        text = report(dataset, found, title=SCRIPT).to_html()
        page = Page(text)
        assert page.tags.count("script") == len(page.data) + 2
        assert "img" not in page.tags and not page.handlers
        assert SCRIPT in page.text and LEVEL in page.text
        assert SCRIPT not in text and LEVEL not in text
        drawn = json.dumps(page.data["spec-residuals"])
        assert "<script" not in drawn and "&lt;" in drawn


def test_a_study_of_1500_trials_is_a_page_of_less_than_8_mb(tmp_path: Path) -> None:
    dataset = planted(1500)
    found = fit(dataset, form="generic", n_seeds=1)
    path = tmp_path / "report.html"
    report(dataset, found).save(path)
    assert 4e6 < path.stat().st_size < 8e6


def test_mathml_has_a_row_for_every_term(fits: dict[str, FitResult]) -> None:
    from paceline.reports._mathml import typeset

    for name in ("posynomial", "corrected"):
        expression = fits[name].estimator.expression_
        text = typeset(expression)
        assert text.count("<mtr>") == len(expression.terms)
    text = typeset(fits["generic"].estimator.expression_)
    assert text.count("<mi>n_devices</mi>") == 1
    for tag in ("math", "mtable", "mrow", "msup", "mtd"):
        assert text.count(f"<{tag}>") + text.count(f"<{tag} ") == text.count(f"</{tag}>")


def test_notebooks_get_live_figures_of_every_view(
    dataset: Dataset, fits: dict[str, FitResult], phases: tuple[Path, tuple[PhaseRun, ...]]
) -> None:
    fitted = fits["generic"]
    curve, _ = views.view_scaling(dataset, fitted)
    run = simulate("gpipe", [1e-3, 2e-3], [2e-3, 4e-3], n_micro_batches=4)
    explanation = paceline.explain(fits["posynomial"])
    from paceline.explainers import explain_phases

    told = explain_phases(phases[1])
    figures = [
        plots.plot_agreement(views.view_agreement(dataset, fitted)),
        plots.plot_residuals(views.view_residuals(dataset, fitted)),
        plots.plot_shares(views.view_shares(explanation)),
        plots.plot_front(views.view_front(fits["posynomial"])),
        plots.plot_path(views.view_path(dataset, fitted, strengths=(0.01, 0.1))),
        plots.plot_stability(fitted.stability),
        plots.plot_scaling(curve),
        plots.plot_phases(views.view_phases(told)),
        plots.plot_speedup(views.view_speedup(told)),
        plots.plot_workers(views.view_workers(phases[1])),
        plots.plot_gantt(views.view_plan(small_plan(), run)),
        plots.plot_plan_parts(views.view_plan(small_plan())),
    ]
    assert all(len(figure.data) > 0 for figure in figures)


def test_images_of_the_scaling_curves_are_written(
    tmp_path: Path, dataset: Dataset, fits: dict[str, FitResult]
) -> None:
    pytest.importorskip("matplotlib", reason="pip install 'paceline[images]'")
    paths = save_scaling_images(dataset, fits["posynomial"], tmp_path / "figures")
    assert {path.name for path in paths} == {
        f"scaling-{name}.{ending}"
        for name in ("n_devices", "device_batch")
        for ending in ("png", "svg")
    }
    assert all(path.stat().st_size > 5000 for path in paths)
    assert b"<svg" in paths[1].read_bytes()


def test_notebooks_show_datasets_models_and_plans_as_small_tables(
    dataset: Dataset, fits: dict[str, FitResult]
) -> None:
    for thing, word in (
        (dataset, "n_devices (extrinsic)"),
        (fits["posynomial"], "held-out error"),
        (small_plan(), "predicted step"),
        (planted(20, layers=SCRIPT), "&lt;script&gt;"),
    ):
        text = thing._repr_html_()
        assert word in text and "<script" not in text and len(text) < 5000


def test_what_is_no_dataset_is_refused_in_one_line(fits: dict[str, FitResult]) -> None:
    with pytest.raises(ValueError, match="A report is of a dataset and a fit, but got str"):
        report("runs.db", fits["generic"])  # type: ignore[arg-type]
    assert isinstance(Report(title="", facts=(), sections=()).to_html(), str)
