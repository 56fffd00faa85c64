"""The path of a new user, on a machine that has nothing but Python, pip and make."""

from pathlib import Path

import pytest
from tests.test_new_user import (
    ACTIVATE,
    assert_the_report_holds_the_figures,
    copy_of_the_tree,
    numbers_of,
    readme_commands,
    tutorial_commands,
    type_in,
)


@pytest.mark.slow
def test_a_fresh_copy_followed_word_by_word_ends_with_reports(tmp_path: Path) -> None:
    folder = copy_of_the_tree(tmp_path)
    demo, test = readme_commands("Two commands")
    assert test == "make test"  # this is part of it, and would never end
    type_in([demo], folder)
    assert numbers_of(folder / "demo" / "report.html", "agreement")["measured_s"]

    printed = type_in(readme_commands("On the command line"), folder)
    assert "predicted" in printed and "measured / predicted" in printed
    assert_the_report_holds_the_figures(folder)

    (folder / "report.html").unlink()
    type_in([ACTIVATE, "python docs/tutorials/first_model.py"], folder)
    assert_the_report_holds_the_figures(folder)
    (folder / "report.html").unlink()
    type_in([ACTIVATE, *tutorial_commands()], folder)
    assert_the_report_holds_the_figures(folder)
