from collections.abc import Callable
from pathlib import Path

from paceline.dataset import read_store

TEXT = """PARAMETER x y
POINTS (20 1) (20 2) (30 1) (30 2)
REGION solve
METRIC time
DATA 1.0 1.2 1.1
DATA 2.0
DATA 3 3.5
DATA 4
"""


def test_import_turns_files_of_extra_p_into_stores_and_back(run: Callable, tmp_path: Path) -> None:
    source, store, back = tmp_path / "in.txt", tmp_path / "runs.db", tmp_path / "back.extrap"
    source.write_text(TEXT)
    assert run("import", source, "-o", store, "--intrinsic", "x,y").code == 0
    dataset = read_store(store)
    assert dataset.times_s is not None and dataset.times_s[0] == (1.0, 1.2, 1.1)
    assert run("import", store, "-o", back).code == 0
    assert "DATA 1.0 1.2 1.1" in back.read_text()


def test_import_asks_which_time_is_meant(run: Callable, tmp_path: Path) -> None:
    source, store = tmp_path / "in.txt", tmp_path / "runs.db"
    source.write_text(TEXT + TEXT[TEXT.index("REGION") :].replace("solve", "send"))
    unclear = run("import", source, "-o", store)
    assert unclear.code == 2 and "solve:time, send:time" in unclear.err
    assert run("import", source, "-o", store, "--time", "send", "--intrinsic", "x,y").code == 0
