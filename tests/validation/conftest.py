from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from paceline.validation import Facts, load_facts
from paceline.validation._facts import SOURCES, build_facts, read_source

Sources = dict[str, dict[str, Any]]
Edit = Callable[[Sources], Any]


@pytest.fixture
def facts() -> Facts:
    return load_facts()


@pytest.fixture
def facts_with() -> Callable[[Edit], Facts]:
    """Build facts from the shipped files after an edit of their plain data in memory."""

    def build(edit: Edit) -> Facts:
        sources = {name: read_source(name) for name in SOURCES}
        edit(sources)
        return build_facts(list(sources.values()))

    return build
