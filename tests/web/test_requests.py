"""Requests of any shape never break the server."""

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.web.conftest import EVIL, TOKEN

from paceline.web import Settings, make_app

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its own dependencies
    schemathesis = pytest.importorskip("schemathesis", reason="Try: pip install schemathesis")
    from schemathesis import GenerationMode

NAMES = ["times.json", "generic.json", "evil.json", "times.db", "times.csv", "plan.json"]
PARAMETERS = ["n_devices", "global_batch", "width", "optimizer", EVIL]
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = NUMBERS | st.sampled_from([0, -1, 1e308, 1e-320, 3, 16, "adam", "\ud800", ""])
OPERATIONS = [
    "GET /api/about",
    "GET /api/files",
    "GET /api/studies",
    "GET /api/study",
    "GET /api/model",
    "POST /api/model/use",
    "GET /api/whatif",
    "POST /api/whatif",
    "POST /api/whatif/halve",
    "GET /api/table",
    "POST /api/upload",
    "POST /api/fit",
    "POST /api/compare",
    "GET /api/jobs",
    "GET /api/jobs/{number}",
    "POST /api/jobs/{number}/stop",
    "GET /api/oracle",
    "POST /api/oracle",
    "GET /api/plan",
]


@pytest.fixture(scope="module")
def schema(made: Path) -> Any:
    app = make_app(Settings(folder=made, token=TOKEN, max_jobs=0))
    return schemathesis.openapi.from_asgi("/api/openapi.json", app, headers={"Host": "127.0.0.1"})


def test_every_operation_is_tried(schema: Any) -> None:
    found = [o.ok() for o in schema.get_all_operations()]
    assert sorted(f"{o.method.upper()} {o.path}" for o in found) == sorted(OPERATIONS)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", OPERATIONS)
def test_no_request_gives_an_error_of_the_server(schema: Any, name: str, mode: Any) -> None:
    method, path = name.split(" ")
    operation = schema[path][method]
    if mode is GenerationMode.NEGATIVE and not (operation.query or operation.body):
        pytest.skip("nothing can be wrong in a request without parts")
    seen = try_requests(operation, mode)
    assert sum(seen.values()) > 0 and max(seen) < 500
    if name.startswith("POST /api/whatif") and mode is GenerationMode.POSITIVE:
        assert seen[200] and seen[400] and seen[404]  # it went as deep as it can


@pytest.mark.parametrize("path", ["/api/whatif", "/api/whatif/halve", "/api/oracle", "/api/fit"])
@pytest.mark.parametrize(
    "body",
    [
        b'{"file": "times.json", "point": {"n_devices": NaN}}',
        b'{"file": "times.json", "point": {"n_devices": 1e999}}',
        b'{"file": "times.json", "point": {"\\ud800": 1}}',
        b'{"file": "\\u0000", "save_as": "\\ud800"}',
        b'{"workload": "\\ud800", "cluster": "/etc/passwd"}',
        b'{"workload": "lenet5", "cluster": "../x.toml"}',
        b'{"workload": "lenet5", "cluster": "abci", "optimizer": "\\ud800", "last": 2}',
        b"[" * 5000,
        b"\xff\xfe",
        b"null",
        b"",
    ],
)
def test_what_no_client_should_send_is_refused(client: TestClient, path: str, body: bytes) -> None:
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500 and len(answer.json()["error"]) < 700


def try_requests(operation: Any, mode: Any) -> Counter[int]:
    """Return how often every status was answered."""
    seen: Counter[int] = Counter()

    @settings(
        max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(
        case=operation.as_strategy(generation_mode=mode),
        file=st.sampled_from([None, *NAMES]),
        point=st.dictionaries(st.sampled_from(PARAMETERS), VALUES, max_size=4),
    )
    def try_one(case: Any, file: str | None, point: dict[str, Any]) -> None:
        if file is not None:
            _aim(case, file, point)
        answer = case.call(headers={"Host": "127.0.0.1", "X-Paceline-Token": TOKEN})
        seen[answer.status_code] += 1
        assert answer.status_code < 500, (case.query, case.body, answer.text)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try_one()
    return seen


def _aim(case: Any, file: str, point: dict[str, Any]) -> None:
    """Name what exists, so that a request goes deeper than the search for its file."""
    if isinstance(case.query, dict) and "file" in case.query:
        case.query["file"] = file
    if isinstance(case.body, dict) and "file" in case.body:
        case.body["file"] = file
        if isinstance(case.body.get("over"), str):
            case.body["over"] = next(iter(point), None)
        if "whatif" in case.operation.path:
            case.body["point"] = point
