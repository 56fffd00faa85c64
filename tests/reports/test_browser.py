"""The report in a real browser: from disk, without a message, without a request."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.browser import CLASHES, keep, needs_chromium
from tests.reports.conftest import LEVEL, SCRIPT, planted
from tests.reports.test_views import small_plan

from paceline.clusters import load_cluster
from paceline.dataset import Dataset
from paceline.estimators import FitResult, fit
from paceline.measurement import PhaseRun
from paceline.oracle import simulate, survey
from paceline.reports import report
from paceline.workloads import load_workload

pytestmark = needs_chromium
DRAWN = "document.documentElement.dataset.drawn === 'yes'"


class Visit:
    """A page with everything that it said and asked for."""

    def __init__(self, browser: Any, path: Path, **settings: Any) -> None:
        self.page = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **settings})
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.goto(path.as_uri())
        self.page.wait_for_function(DRAWN, timeout=60_000)


@pytest.fixture(scope="module")
def paths(
    tmp_path_factory: pytest.TempPathFactory,
    dataset: Dataset,
    fits: dict[str, FitResult],
    phases: tuple[Path, tuple[PhaseRun, ...]],
) -> dict[str, Path]:
    """A report of every form; the posynomial's with phases, strategies and a plan."""
    folder = tmp_path_factory.mktemp("reports")
    run = simulate("1f1b", [1e-3, 2e-3], [2e-3, 4e-3], n_micro_batches=4)
    more = {
        "plan": small_plan(),
        "plan_run": run,
        "phase_runs": phases[1],
        "survey": survey(
            load_workload("lenet5").graph(), load_cluster("abci"), [1, 2, 4, 8], device_batch=8
        ),
    }
    paths = {}
    for form, found in fits.items():
        paths[form] = folder / f"{form}.html"
        report(dataset, found, **(more if form == "posynomial" else {})).save(paths[form])
    return paths


@pytest.mark.parametrize("form", ["generic", "posynomial", "corrected"])
def test_a_report_opens_from_disk_without_a_message_or_a_request(
    form: str, paths: dict[str, Path], browser: Any
) -> None:
    visit = Visit(browser, paths[form])
    keep(visit.page, f"report-{form}")
    charts = visit.page.locator(".chart")
    assert charts.count() >= 6
    assert visit.page.locator(".chart svg.main-svg").count() >= charts.count()
    assert not visit.said
    assert visit.asked == [paths[form].as_uri()]


@pytest.mark.parametrize("form", ["generic", "posynomial"])
def test_no_label_is_cut_or_lies_on_another(
    form: str, paths: dict[str, Path], browser: Any
) -> None:
    visit = Visit(browser, paths[form])
    assert visit.page.evaluate(CLASHES) == []
    wide = visit.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 1280


def test_dark_and_light_are_both_readable(paths: dict[str, Path], browser: Any) -> None:
    visit = Visit(browser, paths["generic"], color_scheme="dark")
    keep(visit.page, "report-dark")
    ink = "getComputedStyle(document.querySelector('.chart .xtitle')).fill"
    paper = "getComputedStyle(document.body).backgroundColor"

    def contrast() -> float:
        return abs(_light(visit.page.evaluate(ink)) - _light(visit.page.evaluate(paper)))

    assert _light(visit.page.evaluate(paper)) < 60 and contrast() > 150
    visit.page.click("#theme")
    visit.page.wait_for_timeout(500)
    assert _light(visit.page.evaluate(paper)) > 200 and contrast() > 150
    assert not visit.said


def _light(colour: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


def test_the_json_of_a_chart_can_be_downloaded(
    paths: dict[str, Path], browser: Any, tmp_path: Path
) -> None:
    visit = Visit(browser, paths["corrected"])
    for button, file in (
        ('button[data-chart="agreement"]', "agreement.json"),
        ("#all-json", "report.json"),
    ):
        with visit.page.expect_download() as waiting:
            visit.page.click(button)
        assert waiting.value.suggested_filename == file
        waiting.value.save_as(tmp_path / file)
    one = json.loads((tmp_path / "agreement.json").read_text())
    every = json.loads((tmp_path / "report.json").read_text())
    assert one["numbers"]["n_rows"] == 90 and one["figure"]["data"]
    assert every["agreement"] == one["numbers"] and not visit.said


def test_script_in_a_name_never_runs(browser: Any, tmp_path: Path) -> None:
    dataset = planted(60, layers=SCRIPT, level=LEVEL)
    path = tmp_path / "report.html"
    found = fit(dataset, form="generic", n_seeds=2, n_bootstrap=2)
    report(dataset, found, title=SCRIPT).save(path)
    visit = Visit(browser, path)
    keep(visit.page, "report-script")
    assert not visit.said and visit.page.title() == SCRIPT
    assert visit.page.locator("h1").inner_text() == SCRIPT
    assert visit.page.locator("img[src=x]").count() == 0


def test_a_phone_needs_no_sideways_scrolling(paths: dict[str, Path], browser: Any) -> None:
    visit = Visit(browser, paths["posynomial"], viewport={"width": 400, "height": 800})
    keep(visit.page, "report-phone")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_report_prints_in_light_colours_on_a4(
    paths: dict[str, Path], browser: Any, tmp_path: Path
) -> None:
    visit = Visit(browser, paths["generic"], color_scheme="dark")
    path = tmp_path / "report.pdf"
    visit.page.pdf(path=path, format="A4")
    assert path.stat().st_size > 50_000
    visit.page.emulate_media(media="print")
    paper = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert _light(paper) == 255
    assert not visit.page.locator("nav").is_visible() and not visit.said
