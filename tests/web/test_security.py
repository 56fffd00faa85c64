"""Who may see and change what."""

import socket
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from paceline.errors import InvalidInputError
from paceline.web import Settings, make_app, serve

GETS = ["/api/model", "/api/study", "/api/table", "/api/plan", "/api/whatif"]
OUTSIDE = [
    "../secret.json",
    "..%2fsecret.json",
    "/etc/passwd",
    "a/../../secret.json",
    "link.json",
    "",
    ".",
    "\0",
    "x" * 499,
    "..\\secret.json",
]


@pytest.mark.parametrize("path", GETS)
@pytest.mark.parametrize("name", OUTSIDE)
def test_no_path_leads_outside_the_folder(
    client: TestClient, folder: Path, path: str, name: str
) -> None:
    if name == "link.json":
        (folder / name).symlink_to(folder.parent / "secret.json")
    answer = client.get(path, params={"file": name})
    assert answer.status_code == 404
    assert str(folder) not in answer.text


@pytest.mark.parametrize("name", ["../x.csv", "a/b.csv", ".hidden.csv", "x.py", "x.csv\n", "…csv"])
def test_an_upload_cannot_choose_where_it_goes(
    client: TestClient, folder: Path, name: str
) -> None:
    before = sorted(folder.parent.rglob("*"))
    answer = client.post("/api/upload", params={"name": name}, content="a,time_s\n1,2\n")
    assert answer.status_code == 400
    assert sorted(folder.parent.rglob("*")) == before


@pytest.mark.parametrize("save_as", ["../x", "/tmp/x", "a/b", "..", "x.db/../y"])
def test_a_model_cannot_be_saved_elsewhere(client: TestClient, save_as: str) -> None:
    answer = client.post("/api/fit", json={"file": "times.csv", "save_as": save_as})
    assert answer.status_code == 400


def test_nothing_is_written_over(client: TestClient, folder: Path) -> None:
    before = (folder / "times.csv").read_bytes()
    answer = client.post("/api/upload", params={"name": "times.csv"}, content="a,time_s\n1,2\n")
    assert answer.status_code == 400 and (folder / "times.csv").read_bytes() == before
    answer = client.post("/api/fit", json={"file": "times.csv", "save_as": "times"})
    assert answer.status_code == 400


def test_an_oversized_upload_is_refused_and_not_kept(client: TestClient, folder: Path) -> None:
    text = b"a,time_s\n" + b"1,2\n" * 100_000
    answer = client.post("/api/upload", params={"name": "big.csv"}, content=text)
    assert answer.status_code == 413 and not (folder / "big.csv").exists()


def test_an_upload_that_hides_its_size_is_refused_too(client: TestClient, folder: Path) -> None:
    pieces = (b"1,2\n" * 10_000 for _ in range(20))
    answer = client.post("/api/upload", params={"name": "big.csv"}, content=pieces)
    assert answer.status_code == 413 and not (folder / "big.csv").exists()


@pytest.mark.parametrize("content", [b"", b"\0\1\2", b"\xff\xfe\xfa", b"a,b\n1,2,3,4\n"])
def test_what_is_no_table_is_not_kept(client: TestClient, folder: Path, content: bytes) -> None:
    answer = client.post("/api/upload", params={"name": "odd.csv"}, content=content)
    assert answer.status_code in (400, 422) and not (folder / "odd.csv").exists()


@pytest.mark.parametrize("token", ["", "wrong", "the-token-of-the-test", "é"])
def test_changes_need_the_token(settings: Settings, folder: Path, token: str) -> None:
    client = TestClient(make_app(settings), base_url="http://127.0.0.1")
    headers = {b"x-paceline-token": token.encode()}
    answer = client.post(
        "/api/upload", params={"name": "x.csv"}, content="a,time_s\n1,2\n", headers=headers
    )
    assert answer.status_code == 403 and not (folder / "x.csv").exists()


def test_looking_needs_no_token_on_this_machine_but_does_from_others(folder: Path) -> None:
    local = TestClient(make_app(Settings(folder=folder)), base_url="http://127.0.0.1")
    assert local.get("/api/files").status_code == 200
    open_to_all = make_app(Settings(folder=folder, host="192.0.2.1", token="t"))
    remote = TestClient(open_to_all, base_url="http://192.0.2.1:8765")
    assert remote.get("/api/files").status_code == 403
    assert remote.get("/api/files", headers={"X-Paceline-Token": "t"}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_a_foreign_host_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/api/files", headers={"Host": host}).status_code == 421
    assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8765", "[::1]:1", "LOCALHOST:80"])
def test_loopback_names_are_our_own(client: TestClient, host: str) -> None:
    assert client.get("/api/files", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/files", "/static/app.css", "/nowhere"])
def test_every_answer_forbids_foreign_scripts(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(p.strip().split(" ", 1) for p in headers["content-security-policy"].split(";"))
    assert policy["script-src"] == "'self'" and policy["default-src"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"


def test_the_pages_hold_no_script_of_their_own(client: TestClient) -> None:
    page = client.get("/").text
    assert "<script>" not in page and "onclick" not in page and "http:" not in page


def test_the_static_files_are_all_that_is_static(client: TestClient) -> None:
    for path in ("/static/../_app.py", "/static/%2e%2e/_app.py", "/static//etc/passwd"):
        assert client.get(path).status_code == 404


def test_a_taken_port_is_refused_in_one_line(folder: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(InvalidInputError, match="must be free"):
            serve(Settings(folder=folder), port=other.getsockname()[1])


def test_what_is_no_folder_cannot_be_served(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="folder"):
        Settings(folder=folder / "times.csv")
