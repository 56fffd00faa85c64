"""The documents in a real browser: opened from disk, without a message, without a request."""

from pathlib import Path
from typing import Any

import pytest
from tests.browser import keep, needs_chromium
from tests.test_site import build_site

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("site"))


def visit(browser: Any, width: int) -> tuple[Any, list[str]]:
    """Return an empty page, and where what it says or asks of others will be noted."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    noted: list[str] = []
    page.on("console", lambda message: noted.append(message.text))
    page.on("pageerror", lambda error: noted.append(str(error)))
    page.on("request", lambda r: r.url.startswith(("file:", "data:")) or noted.append(r.url))
    return page, noted


@pytest.mark.parametrize("width", [1280, 400])
def test_every_page_opens_from_disk_and_fits(browser: Any, site: Path, width: int) -> None:
    page, noted = visit(browser, width)
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":
            continue  # its addresses begin at the root of a server
        page.goto(path.as_uri())
        page.wait_for_selector("h1")
        assert not noted, f"{path.name}: {noted}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name
        keep(page, f"site_{path.stem}_{width}")
    page.close()


def test_the_search_works_from_disk(browser: Any, site: Path) -> None:
    page, noted = visit(browser, 1280)
    page.goto((site / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("noise floor")
    page.wait_for_selector(".md-search-result__item a")
    assert "noise floor" in page.inner_text(".md-search-result__list").lower()
    assert not noted
    keep(page, "site_search")
    page.close()


def test_formulas_are_drawn(browser: Any, site: Path) -> None:
    page, _ = visit(browser, 1280)
    page.goto((site / "models.html").as_uri())
    sizes = page.eval_on_selector_all(
        ".formula math", "all => all.map((m) => m.getBoundingClientRect().height)"
    )
    assert len(sizes) > 10 and min(sizes) > 10
    page.close()
