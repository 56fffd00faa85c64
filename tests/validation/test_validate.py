from __future__ import annotations

import json
from dataclasses import replace

import pytest

import paceline.validation
from paceline.validation import Check, Validation, generate_study, validate
from paceline.validation._recovery import N_FIT, N_UNSEEN

CHECK = Check(
    name="sum",
    source="by hand",
    expected=4.0,
    got=4.0,
    tolerance=0.1,
    passed=True,
    kind="arithmetic",
)


@pytest.fixture(scope="module")
def outcome() -> tuple[Validation, list[tuple[int, int, str]]]:
    calls: list[tuple[int, int, str]] = []
    return validate(lambda *call: calls.append(call)), calls


def test_everything_published_is_replayed(
    outcome: tuple[Validation, list[tuple[int, int, str]]],
) -> None:
    validation, _ = outcome
    assert [str(check) for check in validation.checks if not check.passed] == []
    assert validation.passed
    kinds = {check.kind for check in validation.checks}
    assert kinds == {"arithmetic", "reading", "contradiction", "recovery", "accuracy"}


def test_powers_are_recovered_and_unseen_rows_predicted(
    outcome: tuple[Validation, list[tuple[int, int, str]]],
) -> None:
    checks = [check for check in outcome[0].checks if check.kind == "recovery"]
    assert len(checks) == 6
    for check in checks:
        assert check.got == pytest.approx(check.expected, abs=check.tolerance)


def test_the_outcome_is_plain_data(
    outcome: tuple[Validation, list[tuple[int, int, str]]],
) -> None:
    validation, _ = outcome
    data = json.loads(json.dumps(validation.to_dict(), allow_nan=False))
    assert data["schema"] == "paceline/validation-result/1"
    assert data["passed"] is True
    assert data["n_failed"] == 0
    assert len(data["checks"]) == len(validation.checks)
    assert set(data["checks"][0]) == set(Check.__dataclass_fields__)


def test_progress_is_told_before_every_step_and_at_the_end(
    outcome: tuple[Validation, list[tuple[int, int, str]]],
) -> None:
    calls = outcome[1]
    assert [call[0] for call in calls] == list(range(len(calls)))
    assert {call[1] for call in calls} == {len(calls) - 1}
    assert calls[-1][2] == "done"


@pytest.mark.parametrize("framework", ["tensorflow", "mxnet"])
def test_unseen_rows_are_really_unseen(framework: str) -> None:
    groups = generate_study(framework, n_rows=N_FIT + N_UNSEEN, noise=0.0).dataset.groups()
    assert not set(groups[:N_FIT]) & set(groups[N_FIT:])


def test_one_failed_check_fails_the_whole() -> None:
    validation = Validation(checks=(CHECK, replace(CHECK, passed=False)))
    assert not validation.passed
    assert validation.n_failed == 1
    assert str(validation) == "1 of 2 checks passed"


def test_no_checks_is_no_success() -> None:
    assert not Validation(checks=()).passed


def test_every_public_name_is_documented() -> None:
    for name in paceline.validation.__all__:
        if name != "CheckKind":
            assert getattr(paceline.validation, name).__doc__
