"""Contracts that members of a family run on themselves.

A test class gives one fixture and inherits every check::

    class TestMyRegressor(EstimatorContract):
        @pytest.fixture
        def estimator(self):
            return MyRegressor(extrinsic=["n_devices"])
"""

from paceline.testing._estimators import EstimatorContract, contract_table
from paceline.testing._executors import ExecutorContract, contract_job

__all__ = ["EstimatorContract", "ExecutorContract", "contract_job", "contract_table"]
