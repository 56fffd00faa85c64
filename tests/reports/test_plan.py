"""Plans as text: the picture of a step."""

import pytest

from paceline.oracle import simulate
from paceline.reports import show_gantt


def test_the_picture_shows_every_pass_where_it_runs():
    run = simulate("1f1b", [1.0, 1.0], [1.0, 1.0], n_micro_batches=2)
    *_, first, second = show_gantt(run, 26).splitlines()
    # six units of time on 24 columns: four columns each
    assert first == "0 F0--F1--....B0==....B1=="
    assert second == "1 ....F0--B0==F1--B1==...."


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "sequential", "unlocked"])
@pytest.mark.parametrize(("n_stages", "n"), [(2, 3), (8, 64), (40, 80)])
def test_the_picture_keeps_to_80_columns(schedule, n_stages, n):
    run = simulate(schedule, [1.0] * n_stages, [2.0] * n_stages, n_micro_batches=n)
    lines = show_gantt(run).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line[0].isdigit() for line in lines) == min(n_stages, 16)
    assert ("more stages" in lines[-1]) == (n_stages > 16)
