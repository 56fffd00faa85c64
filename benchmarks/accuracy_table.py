"""Tables of what `accuracy.py` found.

    python benchmarks/accuracy_table.py FIGURES.json... [--into benchmarks/README.md]

Prints the tables of these files; with `--into` puts each between its two marks in a document,
``<!-- accuracy -->`` and ``<!-- end of accuracy -->``, and so for coverage and planted.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from pathlib import Path

import numpy as np

OURS = ("auto", "posynomial", "generic", "corrected", "symbolic", "extra-p")
WORDS = {"svr": "support vectors", "hist-boosting": "histogram boosting", "power-law": "power law"}
LARGE = 500  # rows from which on coverage must be nearer


def percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def best_other(found: dict) -> tuple[str, float] | None:
    others = {name: f["mean"] for name, f in found.items() if name not in OURS}
    return min(others.items(), key=lambda pair: pair[1]) if others else None


def text_table(name: str, found: dict) -> str:
    """Return what all members did on one set, for a terminal."""
    lines = [f"\n{name}: {found['rows']} rows, noise floor {percent(found['floor']) or 'unknown'}"]
    for kind in ("folds", "scale-out"):
        if kind not in found:
            continue
        lines.append(
            f"  {kind:10} {'mean':>8} {'median':>8} {'ratio':>6} {'cover':>6} {'s/fit':>6}"
        )
        for member, f in sorted(found[kind].items(), key=lambda pair: pair[1]["mean"]):
            errors = f"{100 * f['mean']:7.2f}% {100 * f['median']:7.2f}%"
            cover = f"{f['coverage']:.3f}" if "coverage" in f else ""
            lines.append(
                f"  {member:14}{errors} {number(f['ratio']):>6} {cover:>6} {f['seconds']:6.1f}"
            )
    return "\n".join(lines)


def geometric_means(sets: dict) -> tuple[dict[str, float], str]:
    """Return geometric means of the ratios to the best other, as numbers and as text."""
    found, lines = {}, []
    for kind in ("folds", "scale-out"):
        for name in ("auto", "posynomial", "symbolic"):
            ratios = [s[kind][name]["ratio"] for s in sets.values() if name in s.get(kind, {})]
            if ratios and None not in ratios:
                mean = float(np.exp(np.mean(np.log(ratios))))
                found[f"{kind} {name}"] = mean
                lines.append(f"{kind}, {name}: geometric mean {mean:.3f}, worst {max(ratios):.2f}")
    return found, "\n".join(["", *lines])


def markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def accuracy_table(figures: dict) -> str:
    sets = figures["sets"]
    extra = [n for n in ("symbolic", "extra-p") if any(n in s["folds"] for s in sets.values())]
    header = ["set", "rows", "`auto`", "posynomial alone", *extra, "best other", "ratio of `auto`"]
    rows = [accuracy_row(name, found, extra) for name, found in sets.items()]
    split = [scale_out_row(name, found) for name, found in sets.items() if "scale-out" in found]
    title = ["scale-out", "`auto`", "posynomial alone", "best other", "ratio of `auto`"]
    text = markdown([*header, "coverage of 90 %"], rows)
    if split:
        text += "\n\n" + markdown([*title, "coverage of 90 %"], split)
    return text + "\n\n" + sentence(figures)


def accuracy_row(name: str, found: dict, extra: list[str]) -> list[str]:
    members = found["folds"]
    errors = [percent(members.get(n, {}).get("mean")) for n in ("auto", "posynomial", *extra)]
    return [name, str(found["rows"]), *errors, *judged(members)]


def scale_out_row(name: str, found: dict) -> list[str]:
    members = found["scale-out"]
    errors = [percent(members.get(n, {}).get("mean")) for n in ("auto", "posynomial")]
    return [name, *errors, *judged(members)]


def judged(members: dict) -> list[str]:
    best, auto = best_other(members), members.get("auto", {})
    text = "" if best is None else f"{WORDS.get(best[0], best[0])} {percent(best[1])}"
    return [text, number(auto.get("ratio")), number(auto.get("coverage"))]


def sentence(figures: dict) -> str:
    means = {
        key: f"{figures['geometric_means'][key]:.2f}"
        for key in ("folds auto", "scale-out auto", "folds posynomial")
        if key in figures["geometric_means"]
    }
    words = {
        "folds auto": "of `auto` {} on folds",
        "scale-out auto": "{} on scale-out splits",
        "folds posynomial": "of the posynomial alone {} on folds",
    }
    parts = [words[key].format(value) for key, value in means.items()]
    n = figures["n_foldings"]
    foldings = "one folding" if n == 1 else f"mean of {n} foldings"
    text = f"Geometric mean of the ratios to the best other ({foldings}): {', '.join(parts)}."
    return textwrap.fill(text, 99)


def limits_of(n_rows: int) -> tuple[float, float]:
    return (0.87, 0.95) if n_rows < LARGE else (0.88, 0.94)


def coverage_table(sets: dict) -> str:
    """Return how often intervals held, beside what is wanted."""
    rows = []
    for name, f in sets.items():
        low, high = limits_of(f["rows"])
        verdict = "holds" if low <= f["coverage"] <= high else "**misses**"
        spread = f"{f['coverage']:.3f} ± {f['spread']:.3f}"
        rows.append([name, str(f["rows"]), spread, f"{low:.2f} to {high:.2f}", verdict])
    return markdown(["set", "rows", "coverage of 90 %", "wanted", ""], rows)


def planted_table(figures: dict) -> str:
    low, middle, high = figures["quartiles"]
    by_terms = [f"{k}: {m:.2f}" for k, m in figures["by_terms"].items()]
    rows = [
        ["mean (wanted: at most 1.25)", f"{figures['mean_ratio']:.3f}"],
        ["quartiles", f"{low:.3f}, {middle:.3f}, {high:.3f}"],
        ["worst", f"{figures['worst']:.2f}"],
        ["by number of planted terms", ", ".join(by_terms)],
        ["the planted terms with constants fitted", f"{figures['mean_attainable']:.3f}"],
        ["coverage of 90 %", f"{figures['coverage']:.3f}"],
    ]
    return markdown(["error of `auto` over the floor", ""], rows)


def table_of(record: dict) -> str:
    figures = record["figures"]
    makers = {
        "accuracy": lambda: accuracy_table(figures),
        "coverage": lambda: coverage_table(figures["sets"]),
        "planted": lambda: planted_table(figures),
    }
    return makers[record["part"]]()


def put_into(text: str, part: str, table: str) -> str:
    """Return a document with a table between the marks of its part."""
    pattern = rf"(<!-- {part} -->\n).*?(<!-- end of {part} -->)"
    if not re.search(pattern, text, re.S):
        raise SystemExit(f"`<!-- {part} -->` and `<!-- end of {part} -->` must be there.")
    return re.sub(pattern, lambda m: f"{m[1]}\n{table}\n\n{m[2]}", text, flags=re.S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", type=Path, nargs="+")
    parser.add_argument("--into", type=Path)
    options = parser.parse_args()
    for path in options.figures:
        record = json.loads(path.read_text())
        print(table_of(record), end="\n\n")
        if options.into:
            text = put_into(options.into.read_text(), record["part"], table_of(record))
            options.into.write_text(text)


if __name__ == "__main__":
    main()
