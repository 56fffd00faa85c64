import json
import warnings

import numpy as np
import pandas as pd
import pytest

from paceline.dataset import Dataset
from paceline.errors import BoundWarning, ConvergenceWarning, InvalidInputError
from paceline.estimators._black_boxes import BlackBoxRegressor
from paceline.estimators._comparison import compare
from paceline.estimators._generic import GenericRegressor
from paceline.estimators._members import default_members
from paceline.estimators._power_law import PowerLawRegressor
from paceline.reports import show_comparison

POWER_LAW = {"power-law": lambda d: PowerLawRegressor(d.extrinsic, d.categorical)}


def frame_of(time, n=90, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "layers": rng.uniform(1, 8, n),
            "width": rng.uniform(16, 256, n),
            "n_devices": rng.choice([1.0, 2.0, 4.0, 8.0], n),
            "optimizer": rng.choice(["adam", "sgd", "rmsprop"], n),
        }
    )
    frame["time_s"] = time(frame) * rng.lognormal(0, noise, n)
    return frame


def dataset_of(time, **options):
    return Dataset.from_frame(
        frame_of(time, **options),
        intrinsic=["layers", "width", "optimizer"],
        extrinsic=["n_devices"],
    )


def power_law(frame):
    slow = frame["optimizer"].map({"adam": 1.5, "sgd": 1.0, "rmsprop": 1.2})
    return 1e-4 * frame["layers"] * frame["width"] ** 1.2 * slow / frame["n_devices"] ** 0.8


def generic(frame):
    slow = frame["optimizer"].map({"adam": 1.5, "sgd": 0.0, "rmsprop": 0.8})
    inside = 0.5 * frame["layers"] + 1e-3 * frame["width"] ** 1.3 + slow
    return inside / frame["n_devices"] ** 0.9 + 0.4


def small_members():
    boxes = {
        name: (lambda d, m=name: BlackBoxRegressor(m, d.categorical, n_trees=20))
        for name in ("forest", "boosting")
    }
    return {
        "generic": lambda d: GenericRegressor(d.extrinsic, d.categorical),
        **POWER_LAW,
        **boxes,
    }


@pytest.mark.parametrize(("truth", "winner"), [(power_law, "power-law"), (generic, "generic")])
def test_the_family_that_made_the_data_wins(truth, winner):
    result = compare(dataset_of(truth, noise=0.02), members=small_members(), n_folds=3)
    assert result.rows[0].name == winner
    assert result.rows[0].mape < 0.025
    assert [row.mape for row in result.rows] == sorted(row.mape for row in result.rows)


def test_all_default_members_are_compared_on_the_same_rows():
    dataset = dataset_of(generic, n=40, noise=0.05)
    result = compare(dataset, holdout=0.3)
    assert {row.name for row in result.rows} == set(default_members())
    assert [row.error for row in result.rows] == [""] * len(default_members())
    assert (result.n_rows, result.n_folds, result.n_held_out) == (40, 1, 12)
    assert (
        result.split == "30 % of the rows held out, rows of the same configuration kept together"
    )
    assert all(row.fit_seconds > 0 for row in result.rows)
    assert [row.name for row in result.rows if row.coverage is not None] == ["auto"]
    l1 = next(row for row in result.rows if row.name == "generic-l1")
    assert l1.settings["penalty"] == "l1" and l1.settings["strength"] == "0.001"


def test_every_member_sees_the_same_folds():
    seen = {}

    class Spy(PowerLawRegressor):
        def fit(self, X, y, sample_weight=None):
            seen.setdefault(self.tag, []).append(tuple(X.index))
            return super().fit(X, y)

    def spy(tag):
        def make(dataset):
            model = Spy(dataset.extrinsic, dataset.categorical)
            model.tag = tag
            return model

        return make

    compare(dataset_of(power_law), members={"a": spy("a"), "b": spy("b")})
    assert seen["a"] == seen["b"] and len(seen["a"]) == 5


@pytest.mark.parametrize(
    "reason", [InvalidInputError("too few"), ValueError("no"), np.linalg.LinAlgError("flat")]
)
def test_a_failing_member_is_reported_and_the_others_go_on(reason):
    def fail(dataset):
        raise reason

    result = compare(dataset_of(power_law), members={"broken": fail, **POWER_LAW})
    assert [row.name for row in result.rows] == ["power-law", "broken"]
    assert result.rows[1].error == str(reason)
    assert result.rows[1].scores is None and result.rows[0].error == ""


def test_our_own_faults_are_not_hidden():
    def fail(dataset):
        raise KeyError("oops")

    with pytest.raises(KeyError):
        compare(dataset_of(power_law), members={"broken": fail})


def test_a_member_that_predicts_no_numbers_has_failed():
    class Blank(PowerLawRegressor):
        def predict(self, X):
            return np.full(len(X), np.nan)

    result = compare(dataset_of(power_law), members={"blank": lambda d: Blank()})
    assert "must be numbers" in result.rows[0].error


class Loud(PowerLawRegressor):
    def fit(self, X, y, sample_weight=None):
        for category in (BoundWarning, ConvergenceWarning, RuntimeWarning):
            warnings.warn("hear me", category, stacklevel=2)
        return super().fit(X, y)


def test_only_our_warnings_of_bounds_and_convergence_are_silenced():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compare(dataset_of(power_law), members={"loud": lambda d: Loud()}, holdout=0.5)
    assert [w.category for w in caught] == [RuntimeWarning]


def test_progress_counts_every_fit():
    calls = []
    members = {"a": POWER_LAW["power-law"], "b": POWER_LAW["power-law"]}
    compare(dataset_of(power_law), members=members, n_folds=2, progress=lambda *c: calls.append(c))
    assert calls == [
        (0, 4, "a, fit 1 of 2"),
        (1, 4, "a, fit 2 of 2"),
        (2, 4, "b, fit 1 of 2"),
        (3, 4, "b, fit 2 of 2"),
        (4, 4, "done"),
    ]


def test_rows_of_a_group_are_held_out_together():
    frame = frame_of(power_law).assign(model=lambda f: np.arange(len(f)) % 3)
    dataset = Dataset.from_frame(
        frame,
        intrinsic=["layers", "width", "optimizer"],
        extrinsic=["n_devices"],
        group="model",
    )
    result = compare(dataset, group="model", members=POWER_LAW)
    assert result.n_folds == 3
    assert result.split == "3 folds, rows of the same model kept together"


def test_given_rows_are_fitted_and_held_out():
    rows = (np.arange(60), np.arange(60, 90))
    result = compare(dataset_of(power_law), holdout=rows, members=POWER_LAW)
    assert result.n_held_out == 30
    assert result.split == "60 given rows to fit, 30 held out"
    assert result.rows[0].mape < 1e-6


@pytest.mark.parametrize(
    ("rows", "group", "message"),
    [
        (([0, 1], [1, 2]), None, "twice"),
        (([0, 1], [90]), None, "0 to 89"),
        (([], [1]), None, "some of each"),
        (([0], [1]), "layers", "regrouped"),
    ],
)
def test_impossible_rows_are_refused(rows, group, message):
    with pytest.raises(InvalidInputError, match=message):
        compare(dataset_of(power_law), holdout=rows, group=group, members=POWER_LAW)


def test_no_members_are_refused():
    with pytest.raises(InvalidInputError, match="At least one member"):
        compare(dataset_of(power_law), members={})


def test_repeats_give_a_noise_floor():
    once = frame_of(power_law)
    frame = pd.concat([once, once.assign(time_s=1.2 * once["time_s"])], ignore_index=True)
    dataset = Dataset.from_frame(
        frame, intrinsic=["layers", "width", "optimizer"], extrinsic=["n_devices"]
    )
    result = compare(dataset, members=POWER_LAW)
    assert result.floor == pytest.approx(2**0.5 * 0.1 / 1.1)
    assert compare(dataset_of(power_law), members=POWER_LAW).floor is None


def test_settings_that_differ_between_folds_are_counted():
    class Choosy(PowerLawRegressor):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y)
            self.settings_ = {"kind": "same", "first": str(0 in X.index)}
            return self

    result = compare(dataset_of(power_law), members={"choosy": lambda d: Choosy()}, n_folds=3)
    assert result.rows[0].settings == {
        "kind": "same",
        "first": "True (2 of 3), False (1 of 3)",
    }


def test_the_result_can_be_written_as_json_and_csv():
    def fail(dataset):
        raise ValueError("no")

    result = compare(dataset_of(power_law), members={**POWER_LAW, "broken": fail})
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["schema"] == "paceline/comparison/1"
    assert [row["name"] for row in data["rows"]] == ["power-law", "broken"]
    table = result.to_frame()
    assert list(table["name"]) == ["power-law", "broken"]
    assert table["mape"].iloc[0] == result.rows[0].mape and np.isnan(table["mape"].iloc[1])
    assert list(table["error"]) == ["", "no"]


class Bounded(PowerLawRegressor):
    """Claims intervals of a given reach."""

    reach = 1.0

    def predict_intervals(self, X):
        t = self.predict(X)
        return pd.DataFrame(
            {"predicted_s": t, "lower_s": t / self.reach, "upper_s": t * self.reach}
        )


@pytest.mark.parametrize(
    ("reach", "least", "most"), [(1.001, 0, 0.2), (1.08, 0.8, 0.97), (2, 1, 1)]
)
def test_coverage_is_the_share_of_unseen_times_within_the_intervals(reach, least, most):
    member = type("Reaching", (Bounded,), {"reach": reach})
    dataset = dataset_of(power_law, noise=0.05)
    row = compare(dataset, members={"bounded": lambda d: member(d.extrinsic, d.categorical)}).rows[
        0
    ]
    assert least <= row.coverage <= most
    assert row.to_dict()["coverage"] == row.coverage


def test_what_fit_would_choose_is_compared_with_its_groups_and_intervals():
    frame = frame_of(power_law, n=120, noise=0.05)
    frame["model"] = [f"m{i % 12}" for i in range(len(frame))]
    dataset = Dataset.from_frame(frame, group="model")
    members = {name: default_members()[name] for name in ("auto", "power-law")}
    auto = {r.name: r for r in compare(dataset, group="model", members=members).rows}["auto"]
    assert auto.error == "" and auto.settings["chosen"].startswith("posynomial")
    assert 0.8 <= auto.coverage <= 1.0
    shown = show_comparison(compare(dataset, holdout=0.3, members=members))
    assert "covers" in shown and "share of the held-out times within the 90 % interval" in shown


def test_the_same_seed_gives_the_same_scores():
    dataset = dataset_of(generic, noise=0.1)
    first, again = (compare(dataset, members=small_members(), n_folds=2) for _ in range(2))
    assert [row.scores for row in first.rows] == [row.scores for row in again.rows]
