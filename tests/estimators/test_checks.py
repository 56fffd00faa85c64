import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from paceline.estimators._black_boxes import BlackBoxRegressor
from paceline.estimators._corrected import CorrectedRegressor
from paceline.estimators._extra_p import ExtraPRegressor
from paceline.estimators._generic import GenericRegressor
from paceline.estimators._posynomial import PosynomialRegressor
from paceline.estimators._power_law import PowerLawRegressor

ESTIMATORS = [
    GenericRegressor(),
    PowerLawRegressor(),
    PosynomialRegressor(max_terms=2),
    CorrectedRegressor(),
    ExtraPRegressor(),
    BlackBoxRegressor("forest", n_trees=5),
    BlackBoxRegressor("svr"),
    BlackBoxRegressor("boosting", n_trees=5),
]


# the data of these checks are no training times, so constants may well meet their bounds
@pytest.mark.filterwarnings("ignore::paceline.errors.PacelineWarning")
@parametrize_with_checks(ESTIMATORS)
def test_an_estimator_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)
