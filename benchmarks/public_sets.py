"""The posynomial of every set of a folder, as `fit` and `explain` print it.

    python benchmarks/public_sets.py DIR [--only NAME] [--full] [--into docs/public-sets.md]

Sets and role files are those of `accuracy.py`. With `--into` what is printed goes between the
marks of each set, ``<!-- NAME -->`` and ``<!-- end of NAME -->``; the paragraphs around them are
written by people, who must read them again then. `--full` prints all that `explain` says.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from accuracy import load
from accuracy_table import put_into
from paceline.errors import PacelineWarning
from paceline.estimators import fit
from paceline.explainers import explain
from paceline.reports import show_explanation

SHOWN = ("t = ", "factor of a level", "Fit", "Where the time goes")  # how these sections begin
WIDTH, HEIGHT = 80, 50  # a screen


def command_of(name: str, roles: dict) -> str:
    options = {key: ",".join(roles[key]) for key in ("intrinsic", "extrinsic", "categorical")}
    parts = [f"--{key} {value}" for key, value in options.items() if value]
    parts += [f"--group {roles['group']}"] if "group" in roles else []
    command = f"$ paceline fit {name}.csv --form posynomial -o model.json"
    return " \\\n    ".join([command, *parts]) + "\n$ paceline explain model.json"


def explanation_of(path: Path) -> tuple[dict, str]:
    dataset, roles = load(path)
    result = fit(dataset, form="posynomial", group=roles.get("group"), n_seeds=1)
    return roles, show_explanation(explain(result))


def excerpt(text: str) -> str:
    """Return the formula, its error and what its terms are."""
    sections = [s for s in text.split("\n\n") if s.startswith(SHOWN) or " counts as " in s]
    return "\n\n".join(sections)


def check_size(name: str, text: str) -> None:
    formula = text.split("\n\nFit\n")[0].splitlines()
    widest = max(map(len, text.splitlines()))
    verdict = "fits" if widest <= WIDTH and len(formula) <= HEIGHT else "does not fit"
    print(f"{name}: {len(formula)} lines of formula, {widest} columns: {verdict}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", help="Name of a set; may be given again.")
    parser.add_argument("--full", action="store_true", help="All that `explain` says.")
    parser.add_argument("--into", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", PacelineWarning)
    for path in sorted(options.folder.glob("*.csv")):
        if not path.with_suffix(".toml").exists() or path.stem not in (options.only or path.stem):
            continue
        roles, text = explanation_of(path)
        check_size(path.stem, text)
        command = command_of(path.stem, roles)
        print(f"{command}\n{text if options.full else excerpt(text)}\n", flush=True)
        if options.into:
            block = f"```console\n{command}\n{excerpt(text)}\n...\n```"
            options.into.write_text(put_into(options.into.read_text(), path.stem, block))


if __name__ == "__main__":
    main()
