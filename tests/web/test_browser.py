"""The pages in a real browser."""

import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser import CLASHES, keep, needs_chromium
from tests.measurement.small_studies import simulated, small_study
from tests.web.conftest import EVIL, times

from paceline.measurement import measure

pytestmark = needs_chromium
PATIENCE_MS = 60_000
PAGES = {
    "studies": "#/studies?file=times.db",
    "data": "#/data?file=times.csv",
    "model": "#/model?file=times.json",
    "whatif": "#/whatif?file=times.json",
    "compare": "#/compare",
    "oracle": "#/oracle",
    "plan": "#/plan",
}


@pytest.fixture(scope="module")
def served(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(made, tmp_path_factory.mktemp("browser") / "served"))


@pytest.fixture(scope="module")
def address(served: Path) -> Iterator[str]:
    """The address of ``paceline serve``, which ends with the tests."""
    command = [sys.executable, "-m", "paceline", "serve", str(served), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == 0  # Ctrl-C is how it is meant to end
        server.stdout.close()


class Visit:
    """A tab with everything that it said and asked for."""

    def __init__(self, browser: Any, address: str, width: int = 1280) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900})
        self.page.set_default_timeout(PATIENCE_MS)
        self.said: list[str] = []
        self.asked: set[str] = set()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.asked.add(request.url.split("/")[2]))
        self.page.goto(address)
        self.page.wait_for_selector("main[data-ready=studies]")

    def go(self, place: str) -> None:
        """Follow a link of the application."""
        name = place.removeprefix("#/").split("?")[0]
        self.page.evaluate("place => { location.hash = place; }", "#/none-yet")
        self.page.wait_for_selector("main[data-ready=studies]")
        self.page.evaluate("place => { location.hash = place; }", place)
        self.page.wait_for_selector(f"main[data-ready={name}]")


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    visit = Visit(browser, address)
    yield visit
    visit.page.close()


def test_the_token_leaves_the_address(visit: Visit) -> None:
    assert "token" not in visit.page.url


@pytest.mark.parametrize("width", [1280, 400])
def test_every_page_loads_without_a_message(browser: Any, address: str, width: int) -> None:
    visit = Visit(browser, address, width)
    for name, place in PAGES.items():
        visit.go(place)
        if name == "whatif":
            visit.page.wait_for_selector("#halving table")
        assert visit.said == [], name
        assert visit.page.query_selector(".problem") is None, name
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert visit.page.evaluate(CLASHES) == [], name
        keep(visit.page, f"web-{name}-{width}")
    assert len(visit.asked) == 1  # nothing but this server was asked
    visit.page.close()


def test_a_slider_changes_the_prediction_by_keyboard(visit: Visit) -> None:
    visit.go(PAGES["whatif"])
    before = visit.page.inner_text("#prediction .big")
    visit.page.focus("input[data-parameter=global_batch]")
    for _ in range(3):
        visit.page.keyboard.press("ArrowRight")
    visit.page.wait_for_function(
        "before => document.querySelector('#prediction .big').innerText !== before", arg=before
    )
    assert float(visit.page.get_attribute("#prediction", "data-milliseconds") or 0) > 0
    assert visit.said == []


def test_an_uploaded_table_becomes_a_model(visit: Visit, tmp_path: Path, served: Path) -> None:
    times(60, seed=3).rename(columns={"time_s": "seconds"}).to_csv(
        tmp_path / "mine.csv", index=False
    )
    visit.go("#/data")
    visit.page.set_input_files("#upload", tmp_path / "mine.csv")
    visit.page.wait_for_selector("select[data-column=width]")
    assert visit.page.input_value("select[data-column=seconds]") == "time"
    visit.page.select_option("select[data-column=optimizer]", "ignore")
    visit.page.fill("#save-as", "uploaded")
    visit.page.click("#fit")
    visit.page.wait_for_selector("#outcome a")
    keep(visit.page, "web-uploaded-1280")
    visit.page.click("#outcome a >> nth=1")
    visit.page.wait_for_selector("#prediction .big")
    assert (served / "uploaded.json").is_file()
    assert "optimizer" not in visit.page.inner_text("main")
    assert visit.said == []


def test_a_comparison_comes_to_an_end_with_a_table_and_a_picture(
    browser: Any, address: str
) -> None:
    visit = Visit(browser, address)
    visit.page.set_default_timeout(4 * PATIENCE_MS)  # every form and every black box
    visit.go("#/compare?file=times.csv")
    visit.page.select_option("label:has-text('Folds') select", "3")
    visit.page.click("#compare")
    visit.page.wait_for_selector("main progress")
    visit.page.wait_for_selector("#comparison table")
    shown = compared(visit)
    assert {"auto", "generic", "posynomial", "power-law", "forest"} <= set(shown)
    errors = list(shown.values())
    assert errors == sorted(errors) and shown["posynomial"] < shown["power-law"]
    assert "times.csv, 3 folds" in visit.page.inner_text("#comparison h2")
    assert visit.page.locator("#comparison .chart .barlayer .point").count() == len(shown)
    assert visit.page.evaluate(CLASHES) == [] and visit.said == []
    keep(visit.page, "web-compared-1280")
    visit.page.close()

    phone = Visit(browser, address, 400)  # what was compared is still there
    phone.go("#/compare")
    phone.page.wait_for_selector("#comparison .barlayer .point")
    assert compared(phone) == shown
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 400
    assert phone.page.evaluate(CLASHES) == [] and phone.said == []
    keep(phone.page, "web-compared-400")
    phone.page.close()


def compared(visit: Visit) -> dict[str, float]:
    """Return the mean error of every model in the table, in percent."""
    rows = visit.page.locator("#comparison tbody tr").all()
    cells = [row.locator("th, td").all_inner_texts() for row in rows]
    return {name: float(error.split()[0]) for name, error, *_ in cells}


def test_a_running_campaign_shows_its_progress(visit: Visit, served: Path) -> None:
    go_on = threading.Event()

    def one_more() -> bool:
        go_on.wait(0.8)  # slow enough to be seen
        return False

    campaign = threading.Thread(
        target=measure,
        args=(small_study(), served / "live.db"),
        kwargs={"executors": simulated(), "should_stop": one_more},
    )
    campaign.start()
    try:
        card = "[data-study='live.db']"
        visit.go("#/studies")
        visit.page.wait_for_selector(f"{card} .running")
        seen = set()
        for _ in range(40):
            seen.add(re.findall(r"\d+", visit.page.inner_text(f"{card} .done"))[0])
            if len(seen) >= 3:
                break
            time.sleep(0.5)
        keep(visit.page, "web-running-1280")
        assert len(seen) >= 3, seen
    finally:
        go_on.set()
        campaign.join()
    visit.page.wait_for_selector(f"{card} .tag:not(.running)")
    assert visit.said == []


def test_a_script_in_a_name_is_shown_as_text(visit: Visit) -> None:
    for page in ("model", "whatif"):
        visit.go(f"#/{page}?file=evil.json")
        assert EVIL in visit.page.inner_text("main")
    visit.page.select_option("label:has-text('Curve over') select", EVIL)
    visit.page.wait_for_function(
        "name => document.querySelector('#curve').textContent.includes(name)", arg=EVIL
    )
    assert visit.page.query_selector("main img") is None
    assert visit.said == []


def test_without_the_token_a_page_says_what_to_do(browser: Any, address: str) -> None:
    visit = Visit(browser, address.split("#")[0])
    visit.go(PAGES["whatif"])
    assert "needs the token" in visit.page.inner_text(".problem")
    visit.page.close()


def test_an_empty_folder_says_what_to_do(browser: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "paceline", "serve", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            visit = Visit(browser, server.stdout.readline().strip())
            for name in ("studies", "model", "whatif", "compare", "plan"):
                visit.go(f"#/{name}")
                assert visit.page.query_selector(".empty") is not None, name
            assert visit.said == []
        finally:
            server.terminate()
