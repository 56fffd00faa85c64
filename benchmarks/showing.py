"""How long people wait for a report, and for a prediction when they move a slider.

The slider is moved in a real browser (Chromium by Playwright; left out where there is none), on a
corrected model of eight terms; a move's time is from the input to the new figure on the page.
"""

from __future__ import annotations

import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from paceline.validation import generate_study

N_REPORTS, N_MOVES = 5, 40
LONGEST_REPORT_S, LARGEST_REPORT_BYTES, LONGEST_MOVE_MS = 5.0, 8e6, 100.0


def measure() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        generate_study(n_rows=1500).dataset.to_csv(folder / "study.csv")
        _paceline("fit", "study.csv", "-o", "model.json", folder=folder)
        figures = {"report": _reports(folder)}
        options = ("--form", "corrected", "--terms", "8", "-o", "eight.json")
        _paceline("fit", "study.csv", *options, folder=folder)
        figures["what_if"] = _moves(folder, "eight.json")
    return figures


def _paceline(*command: str, folder: Path) -> float:
    begin = time.perf_counter()
    line = [sys.executable, "-m", "paceline", *command]
    subprocess.run(line, check=True, capture_output=True, cwd=folder)
    return time.perf_counter() - begin


def _reports(folder: Path) -> dict[str, float]:
    command = ("report", "study.csv", "model.json", "-o", "report.html")
    seconds = [_paceline(*command, folder=folder) for _ in range(N_REPORTS)]
    n_bytes = (folder / "report.html").stat().st_size
    middle = statistics.median(seconds)
    holds = middle <= LONGEST_REPORT_S and n_bytes <= LARGEST_REPORT_BYTES
    verdict = "holds" if holds else "misses"
    shown = f"median {middle:.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
    print(f"report of 1500 trials: {shown}, {n_bytes / 1e6:.1f} MB ({verdict} 5 s and 8 MB)")
    return {"median_s": middle, "max_s": max(seconds), "n_bytes": n_bytes}


def _moves(folder: Path, model: str) -> dict[str, float] | None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("what-if: left out, since there is no Playwright or no Chromium")
        return None
    command = [sys.executable, "-m", "paceline", "serve", str(folder), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert server.stdout is not None
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            waits = _move(browser.new_page(), server.stdout.readline().strip(), model)
            browser.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
    middle, worst = statistics.median(waits), max(waits)
    verdict = "holds" if middle <= LONGEST_MOVE_MS else "misses"
    print(f"what-if, 8 terms: median {middle:.0f} ms, longest {worst:.0f} ms ({verdict} 100 ms)")
    return {"median_ms": middle, "max_ms": worst}


def _move(page: Any, address: str, model: str) -> list[float]:
    """Return milliseconds from every move to the new figure, as the page saw them."""
    page.goto(address)
    page.wait_for_selector("main[data-ready=studies]")
    page.evaluate("place => { location.hash = place; }", f"#/whatif?file={model}")
    page.wait_for_selector("#prediction .big")
    page.focus("input[type=range]")
    waits = []
    for i in range(N_MOVES):
        before = page.inner_text("#prediction .big")
        page.keyboard.press("ArrowRight" if i // 4 % 2 == 0 else "ArrowLeft")
        page.wait_for_function(
            "before => document.querySelector('#prediction .big').innerText !== before", arg=before
        )
        waits.append(float(page.get_attribute("#prediction", "data-milliseconds")))
    return waits


if __name__ == "__main__":
    measure()
