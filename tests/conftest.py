"""Tests that measure time run one after another, on their own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SERIAL = (
    "executors/test_contract_torch.py",
    "executors/test_frameworks.py",
    "executors/test_trace.py",
    "measurement/test_kill.py",
    "measurement/test_measured_truth.py",
)

# every strategy on several processes, plans run for real: `make test-plans`
PLANS = (
    "cli/test_run.py",
    "executors/test_digits.py",
    "executors/test_divided.py",
    "executors/test_plan_faults.py",
    "oracle/test_traffic.py",
)
# in a real browser, or requests of any shape: `make test-web`
WEB = (
    "reports/test_browser.py",
    "test_site_browser.py",
    "web/test_browser.py",
    "web/test_requests.py",
)
# the README and the first tutorial word by word, here and installed anew: `make test-new-user`
NEW_USER = ("test_new_user.py", "test_new_user_afresh.py", "test_wheel.py")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser, for tests that are marked `web`."""
    from tests.browser import started

    yield from started()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        path = item.path.relative_to(root).as_posix()
        for name, files in (
            ("serial", SERIAL),
            ("plans", PLANS),
            ("web", WEB),
            ("new_user", NEW_USER),
        ):
            if path in files:
                item.add_marker(name)
