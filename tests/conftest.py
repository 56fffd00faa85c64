"""Tests that measure time, or start many processes, run one after another, on their own."""

from pathlib import Path

import pytest

SERIAL = (
    "cli/test_run.py",
    "executors/test_contract_torch.py",
    "executors/test_digits.py",
    "executors/test_divided.py",
    "executors/test_frameworks.py",
    "executors/test_plan_faults.py",
    "executors/test_torch.py",
    "executors/test_trace.py",
    "measurement/test_kill.py",
    "measurement/test_measured_truth.py",
    "measurement/test_own_module.py",
    "measurement/test_torch.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        if item.path.relative_to(root).as_posix() in SERIAL:
            item.add_marker(pytest.mark.serial)
