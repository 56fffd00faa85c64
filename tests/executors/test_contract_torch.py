"""PyTorch keeps the contract of executors."""

import pytest

from paceline.executors import FrameworkExecutor, load_executor
from paceline.testing import ExecutorContract

pytest.importorskip("torch", reason="PyTorch is not installed. Try: pip install 'paceline[torch]'")


class TestTorch(ExecutorContract):
    @pytest.fixture
    def executor(self) -> FrameworkExecutor:
        return load_executor("torch")
