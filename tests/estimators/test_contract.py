import pytest

from paceline.estimators import (
    BlackBoxRegressor,
    CorrectedRegressor,
    ExtraPRegressor,
    GenericRegressor,
    PosynomialRegressor,
    PowerLawRegressor,
)
from paceline.testing import EstimatorContract


class TestGeneric(EstimatorContract):
    @pytest.fixture
    def estimator(self) -> GenericRegressor:
        return GenericRegressor(extrinsic=["n_devices"])


class TestPenalisedGeneric(EstimatorContract):
    @pytest.fixture
    def estimator(self) -> GenericRegressor:
        return GenericRegressor(extrinsic=["n_devices"], penalty="l2", cost="relative")


class TestPowerLaw(EstimatorContract):
    @pytest.fixture
    def estimator(self) -> PowerLawRegressor:
        return PowerLawRegressor()


class TestPosynomial(EstimatorContract):
    @pytest.fixture
    def estimator(self) -> PosynomialRegressor:
        return PosynomialRegressor(max_terms=2)


class TestCorrected(EstimatorContract):
    @pytest.fixture
    def estimator(self) -> CorrectedRegressor:
        return CorrectedRegressor()


class TestExtraP(EstimatorContract):
    @pytest.fixture
    def estimator(self) -> ExtraPRegressor:
        return ExtraPRegressor()


class TestForest(EstimatorContract):
    @pytest.fixture
    def estimator(self) -> BlackBoxRegressor:
        return BlackBoxRegressor("forest", n_trees=30)


class TestBoosting(EstimatorContract):
    @pytest.fixture
    def estimator(self) -> BlackBoxRegressor:
        return BlackBoxRegressor("boosting", n_trees=60)


class TestSupportVectors(EstimatorContract):
    @pytest.fixture
    def estimator(self) -> BlackBoxRegressor:
        return BlackBoxRegressor("svr")
