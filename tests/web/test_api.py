"""What the API answers."""

import time
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from paceline.estimators import FitResult, load_fit


def wait(client: TestClient, job: dict[str, Any]) -> dict[str, Any]:
    for _ in range(600):
        job = client.get(f"/api/jobs/{job['id']}").json()
        if job["state"] != "running":
            return job
        time.sleep(0.1)
    raise AssertionError("the job never ended")


def test_files_are_listed_by_what_they_are(client: TestClient) -> None:
    kinds = {f["name"]: f["kind"] for f in client.get("/api/files").json()["files"]}
    assert kinds["times.csv"] == "table" and kinds["times.db"] == "store"
    assert kinds["times.json"] == "model" and kinds["plan.json"] == "plan"


def test_a_store_is_shown_with_its_rows(client: TestClient) -> None:
    (study,) = client.get("/api/studies").json()["studies"]
    assert (study["name"], study["done"], study["is_running"]) == ("times.db", 80, False)
    trials = client.get("/api/study", params={"file": "times.db"}).json()["trials"]
    assert len(trials) == 80 and trials[0]["time_s"] > 0


def test_a_damaged_store_does_not_hide_the_others(client: TestClient, folder: Path) -> None:
    (folder / "broken.db").write_bytes(b"SQLite format 3\0 and then nothing")
    studies = {s["name"]: s for s in client.get("/api/studies").json()["studies"]}
    assert studies["broken.db"]["error"] and studies["times.db"]["done"] == 80
    assert str(folder) not in studies["broken.db"]["error"]


@pytest.mark.parametrize("name", ["times.json", "generic.json"])
def test_a_model_is_explained(client: TestClient, name: str) -> None:
    model = client.get("/api/model", params={"file": name}).json()
    assert model["formula"].startswith("t = ") and model["typeset"]
    assert sum(share["mean"] for share in model["shares"]) == pytest.approx(1, abs=0.01)
    assert model["data"][0] == ("times.db" if name == "times.json" else model["data"][0])


def test_what_if_answers_as_the_model_predicts(client: TestClient, folder: Path) -> None:
    point = {"n_devices": 4, "global_batch": 128, "width": 32, "optimizer": "adam"}
    found = client.post("/api/whatif", json={"file": "times.json", "point": point}).json()
    model = load_fit(folder / "times.json")
    row, _ = model.measured.complete(point)
    expected = model.predict(row).iloc[0]
    for name in ("predicted_s", "lower_s", "upper_s"):
        assert found["prediction"][name] == pytest.approx(expected[name], rel=1e-9)
    assert found["outside"] == []


def test_one_question_costs_one_prediction(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of an answer is that of `predict`, most of which does not grow with the rows."""
    calls = []
    predict = FitResult.predict
    monkeypatch.setattr(FitResult, "predict", lambda *a: calls.append(1) or predict(*a))
    client.post("/api/whatif", json={"file": "times.json", "point": {"width": 64}})
    assert len(calls) == 1


def test_the_curve_goes_over_devices_with_an_ideal_and_a_knee(client: TestClient) -> None:
    curve = client.post("/api/whatif", json={"file": "times.json"}).json()["curve"]
    assert curve["name"] == "n_devices" and curve["values"] == [1, 2, 4, 8, 16, 32, 64]
    assert curve["ideal_s"][3] == pytest.approx(curve["predicted_s"][0] / 8)
    assert curve["knee"]["n_devices"] in curve["values"]
    assert curve["extrapolates"] == [0, 0, 0, 0, 1, 1, 1]


def test_a_point_outside_says_so(client: TestClient) -> None:
    question = {"file": "times.json", "point": {"n_devices": 512}}
    found = client.post("/api/whatif", json=question).json()
    assert found["prediction"]["extrapolates"] == 1
    assert found["outside"] == ["n_devices: measured from 1 to 8"]


def test_what_halves_the_time_does_halve_it(client: TestClient) -> None:
    point = {"n_devices": 1, "global_batch": 256, "width": 64}
    found = client.post("/api/whatif/halve", json={"file": "times.json", "point": point}).json()
    moves = {m["name"]: m for m in found["moves"] if m["halves"]}
    assert moves["n_devices"]["value"] > 1
    for move in moves.values():
        assert move["predicted_s"] <= 0.5 * found["now_s"]
        again = {**point, move["name"]: move["value"]}
        answer = client.post("/api/whatif", json={"file": "times.json", "point": again}).json()
        assert answer["prediction"]["predicted_s"] == pytest.approx(move["predicted_s"])


def test_sliders_cover_what_was_measured(client: TestClient) -> None:
    known = client.get("/api/whatif", params={"file": "times.json"}).json()
    for parameter in known["numeric"]:
        assert {parameter["low"], parameter["high"]} <= set(parameter["stops"])
        assert parameter["stops"] == sorted(set(parameter["stops"]))
    assert known["axes"][0] == "n_devices"


def test_roles_are_guessed_and_shown(client: TestClient) -> None:
    table = client.get("/api/table", params={"file": "times.csv"}).json()
    parts = {c["name"]: c["part"] for c in table["columns"]}
    assert parts == {
        "n_devices": "extrinsic",
        "global_batch": "extrinsic",
        "width": "intrinsic",
        "optimizer": "category",
        "time_s": "time",
    }


def test_an_uploaded_table_becomes_a_model(client: TestClient, folder: Path) -> None:
    text = (folder / "times.csv").read_text().replace("time_s", "step_ms")
    answer = client.post("/api/upload", params={"name": "mine.csv"}, content=text)
    assert answer.status_code == 201
    assert (answer.json()["time"], answer.json()["time_unit"]) == ("step_ms", "ms")
    request = {
        "file": "mine.csv",
        "time": "step_ms",
        "time_unit": "ms",
        "time_per": "step",
        "intrinsic": ["width", "optimizer"],
        "extrinsic": ["n_devices", "global_batch"],
        "categorical": ["optimizer"],
        "form": "generic",
        "save_as": "mine",
    }
    job = wait(client, client.post("/api/fit", json=request).json())
    assert job["state"] == "done", job["error"]
    assert load_fit(folder / "mine.json").basis.time_per == "step"
    # the roles are kept in a store, so that other expressions can be fitted
    assert client.get("/api/model", params={"file": "mine.json"}).json()["data"][0] == "mine.db"


def test_a_fit_that_cannot_be_made_says_why_in_one_line(client: TestClient) -> None:
    request = {"file": "times.csv", "time": "nonsense", "save_as": "never"}
    job = wait(client, client.post("/api/fit", json=request).json())
    assert job["state"] == "failed" and "nonsense" in job["error"] and "\n" not in job["error"]


def test_another_expression_of_the_front_can_be_used(client: TestClient, folder: Path) -> None:
    choice = {"file": "times.json", "data": "times.db", "n_terms": 1}
    job = wait(client, client.post("/api/model/use", json=choice).json())
    assert job["state"] == "done", job["error"]
    used = load_fit(folder / job["result"]["model"])
    assert len(used.estimator.expression_.terms) == 1


def test_a_job_can_be_stopped_and_leaves_no_process(client: TestClient) -> None:
    job = client.post("/api/compare", json={"file": "times.db"}).json()
    stopped = client.post(f"/api/jobs/{job['id']}/stop").json()
    assert stopped["state"] == "stopped"
    client.app.state.context.jobs.close()  # type: ignore[attr-defined]
    assert not client.app.state.context.jobs._processes  # type: ignore[attr-defined]


def test_only_so_many_jobs_run_at_once(client: TestClient) -> None:
    answers = [client.post("/api/compare", json={"file": "times.db"}) for _ in range(3)]
    assert [a.status_code for a in answers] == [202, 202, 409]


def test_the_oracle_says_what_fits_and_what_limits(client: TestClient) -> None:
    question = {"workload": "resnet50", "cluster": "abci", "last": 4, "batch": 128}
    found = client.post("/api/oracle", json=question).json()
    best = [p for p in found["points"] if p["is_best"]]
    assert {p["n_devices"] for p in best} == {1, 2, 4}
    assert all(p["fits"] and p["memory_bytes"] and p["limit"] for p in best)


def test_nothing_that_fits_is_an_answer_and_no_error(client: TestClient) -> None:
    question = {"workload": "llama-70b", "cluster": "abci", "last": 1, "batch": 1}
    found = client.post("/api/oracle", json=question).json()
    assert "No strategy fits" in found["note"] and found["points"]


def test_a_plan_is_shown_with_its_passes(client: TestClient) -> None:
    plan = client.get("/api/plan", params={"file": "plan.json"}).json()
    assert [s["devices"] for s in plan["stages"]] == [[0], [1]]
    assert len(plan["passes"]) == 2 * 2 * 4 and plan["note"] == ""


def test_a_plan_whose_cluster_lies_elsewhere_is_shown_without_passes(
    client: TestClient, folder: Path
) -> None:
    text = (folder / "plan.json").read_text().replace('"dgx-1"', '"../secret.toml"')
    (folder / "other.json").write_text(text)
    plan = client.get("/api/plan", params={"file": "other.json"}).json()
    assert plan["passes"] == [] and "must be in the folder" in plan["note"]
