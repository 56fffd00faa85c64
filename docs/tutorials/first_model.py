"""Your first model: from a table of times to a report.

You will learn to fit a formula to measured step times, to see how far to trust it, to ask it for
a run that nobody has made, and to write a page that you can mail. Run it at the top of the
repository (`python docs/tutorials/first_model.py`), or type the commands after `$` yourself.
"""

# All you need is a table: one row per run, one column per parameter, one column for the time.
# `examples/lenet5.csv` has 154 of them: LeNet-5 in many shapes on one and two workers.

import shlex
from pathlib import Path

from paceline.cli import main

print(*Path("examples/lenet5.csv").read_text().splitlines()[:3], sep="\n")

# Every command below is one that you would type. This helper shows it and runs it.


def paceline(line: str) -> None:
    """Run `paceline LINE`, as the shell does."""
    print(f"\n$ paceline {line}", flush=True)
    try:
        main(shlex.split(line))
    except SystemExit as ended:
        if ended.code:
            raise


# ## Fit
#
# We say that the times are of a step. All else is guessed from names and values of the columns,
# and every guess is printed as a `note:`. What follows is the formula, and how to read it.

paceline("fit examples/lenet5.csv --time-per step -o model.json")

# Look at two lines first. *Held-out error* is how far the model was off on configurations that
# it had not seen. *Noise floor* is how far repeats of one configuration were apart. No model
# can be better than the second; a model near it is done.
#
# ## Predict
#
# What is not said takes a typical measured value, and that is printed too. The interval is a
# promise about rows not seen: it holds nine times out of ten.

paceline("predict model.json --at n_devices=2 --at device_batch=64")

# Four workers were never measured. The answer comes with a note, and with a wider interval.

paceline("predict model.json --at n_devices=4 --at device_batch=64")

# ## Keep it honest
#
# When new runs come in, hold them against the model: exit code 1 says that it is off by more
# than you allow, which is enough for a nightly job. (Here we only have the rows it was fitted
# to.)

paceline("check model.json examples/lenet5.csv --max-error 20%")

# ## Show it
#
# One page with the formula, where the time goes, predicted against measured, scaling curves and
# their knee. It needs no network: open it, mail it, print it.

paceline("report examples/lenet5.csv model.json -o report.html")

# Next: what the formula says (`read_a_formula.py`), and how to get a table of your own
# (`own_script.py`).
