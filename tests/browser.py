"""A real browser for tests: Chromium, driven by Playwright; skipped with a word where it is not.

Set ``PACELINE_SCREENSHOTS`` to a folder to keep pictures of what was seen.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="a browser is driven by Playwright. Try: pip install playwright"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed. Try: apt-get install -y chromium"
)

# texts of one chart that lie on each other by more than a few pixels, or leave the picture
CLASHES = """() => {
  const found = [];
  for (const chart of document.querySelectorAll(".chart")) {
    const own = chart.getBoundingClientRect();
    const boxes = [...chart.querySelectorAll("text")].filter((t) => t.textContent.trim())
      .map((t) => [t.textContent, t.getBoundingClientRect()])
      .filter(([, b]) => b.width > 0 && b.height > 0);
    for (const [text, b] of boxes)
      if (b.left < own.left - 1 || b.right > own.right + 1 || b.bottom > own.bottom + 1)
        found.push([chart.id, "cut", text]);
    for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
      const [a, p] = boxes[i], [c, q] = boxes[j];
      const w = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (w > 3 && h > 4) found.push([chart.id, a, c]);
    }
  }
  return found;
}"""


def started() -> Iterator[Any]:
    """Yield a browser; the fixture `browser` of all tests."""
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def keep(page: Any, name: str, *, whole: bool = True) -> None:
    """Keep a picture where the caller wants them."""
    if folder := os.environ.get("PACELINE_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=whole)
