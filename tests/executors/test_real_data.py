"""Real data in folders: MNIST's IDX, CIFAR-10's binary version, NIfTI volumes."""

import gzip
import importlib
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paceline.executors import load_executor
from paceline.testing import contract_job

WORKERS = Path(importlib.import_module("paceline.executors.workers").__file__ or "").parent
RNG = np.random.default_rng(0)


@pytest.fixture
def samples(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module as workers see it: a neighbour, Paceline not installed."""
    monkeypatch.syspath_prepend(str(WORKERS))
    before = {name: sys.modules.pop(name, None) for name in ("samples", "protocol")}
    yield importlib.import_module("samples")
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def load(samples: Any, kind: str, folder: Path, shape: list[int], n_classes: int = 4) -> Any:
    sample = {"shape": shape, "n_classes": n_classes}
    return samples.load_samples(
        {"sample": sample, "data": {"kind": kind, "folder": str(folder)}, "seed": 0}
    )


def write_idx(folder: Path, n: int = 6, *, packed: bool = False) -> np.ndarray:
    images = RNG.integers(0, 256, (n, 5, 4), dtype=np.uint8)
    files = {
        "train-images-idx3-ubyte": struct.pack(">IIII", 2051, n, 5, 4) + images.tobytes(),
        "train-labels-idx1-ubyte": struct.pack(">II", 2049, n) + bytes(i % 4 for i in range(n)),
    }
    for name, content in files.items():
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)
    return images


def write_cifar(folder: Path) -> np.ndarray:
    records = RNG.integers(0, 256, (5, 2, 3073), dtype=np.uint8)
    records[:, :, 0] %= 4
    for i, part in enumerate(records, start=1):
        (folder / f"data_batch_{i}.bin").write_bytes(part.tobytes())
    return records.reshape(10, 3073)


def write_nifti(folder: Path, shape: tuple[int, ...] = (4, 5, 6)) -> dict[str, np.ndarray]:
    nibabel = pytest.importorskip("nibabel", reason="Try: pip install 'paceline[nifti]'")
    volumes = {}
    for name in ("AD/one.nii", "AD/two.nii.gz", "NC/three.nii"):
        (folder / name).parent.mkdir(exist_ok=True)
        volumes[name] = RNG.normal(3.0, 2.0, shape).astype(np.float32)
        nibabel.save(nibabel.Nifti1Image(volumes[name], np.eye(4)), folder / name)
    return volumes


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_idx_files_give_their_pixels_and_labels(
    samples: Any, tmp_path: Path, packed: bool
) -> None:
    images = write_idx(tmp_path, packed=packed)
    found = load(samples, "idx", tmp_path, [1, 5, 4])
    assert found.n_samples == 6 and found.item == "B"
    assert bytes(found.read(1, 2)) == images[1:3].tobytes()
    assert found.labels(4, 4).tolist() == [0, 1, 0, 1]  # past the end it begins again
    assert bytes(found.read(5, 2)) == images[[5, 0]].tobytes()


def test_cifar_files_give_their_pixels_and_labels(samples: Any, tmp_path: Path) -> None:
    records = write_cifar(tmp_path)
    found = load(samples, "cifar10", tmp_path, [3, 32, 32])
    assert found.labels(0, 10).tolist() == records[:, 0].tolist()
    assert bytes(found.read(1, 4)) == records[1:5, 1:].tobytes()  # across files


def test_nifti_volumes_are_scaled_and_classes_are_their_folders(
    samples: Any, tmp_path: Path
) -> None:
    volumes = write_nifti(tmp_path)
    found = load(samples, "nifti", tmp_path, [1, 4, 5, 6])
    assert found.labels(0, 3).tolist() == [0, 0, 1] and found.item == "f"
    read = np.frombuffer(found.read(2, 1), dtype=np.float32).reshape(4, 5, 6)
    truth = volumes["NC/three.nii"]
    np.testing.assert_allclose(read, (truth - truth.mean()) / truth.std(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"train-images-idx3-ubyte": b""}, "shorter than its header"),
        ({"train-images-idx3-ubyte": b"no IDX at all, only text"}, "IDX file of images, but is"),
        ({"train-images-idx3-ubyte": struct.pack(">IIII", 2051, 6, 5, 4)}, "120 bytes .* has 0"),
        ({"train-labels-idx1-ubyte": b"\0\0"}, "shorter than its header"),
        ({"train-labels-idx1-ubyte": b"labels? no."}, "IDX file of labels, but is not"),
        ({"train-labels-idx1-ubyte": struct.pack(">II", 2049, 9) + b"\0"}, "6 labels, but has 1"),
        (
            {"train-labels-idx1-ubyte": struct.pack(">II", 2049, 6) + b"\0\1\2\3\4\5"},
            "below `n_classes` = 4, but one is 5",
        ),
    ],
)
def test_garbage_in_idx_files_is_one_line(
    samples: Any, tmp_path: Path, content: dict[str, bytes], message: str
) -> None:
    write_idx(tmp_path)
    for name, text in content.items():
        (tmp_path / name).write_bytes(text)
    refused(samples, "idx", tmp_path, [1, 5, 4], message)


def test_garbage_in_packed_files_is_one_line(samples: Any, tmp_path: Path) -> None:
    write_idx(tmp_path, packed=True)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    for broken in (b"not packed", whole[:30], whole[:20] + b"\xff" * 20 + whole[40:]):
        path.write_bytes(broken)
        refused(samples, "idx", tmp_path, [1, 5, 4], "must be sound, but one is not")


def test_garbage_in_cifar_files_is_one_line(samples: Any, tmp_path: Path) -> None:
    refused(samples, "cifar10", tmp_path, [3, 32, 32], r"must hold a file data_batch_1\.bin")
    write_cifar(tmp_path)
    (tmp_path / "data_batch_3.bin").write_bytes(b"x" * 4000)
    refused(samples, "cifar10", tmp_path, [3, 32, 32], "records of 3073 bytes, but has 4000")


def test_garbage_in_nifti_files_is_one_line(samples: Any, tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel", reason="Try: pip install 'paceline[nifti]'")
    refused(samples, "nifti", tmp_path, [1, 4, 5, 6], "one folder of .nii files per class")
    write_nifti(tmp_path)
    flat = nibabel.Nifti1Image(np.zeros((4, 5), dtype=np.float32), np.eye(4))
    small = nibabel.Nifti1Image(np.zeros((4, 5, 5), dtype=np.float32), np.eye(4))
    for image, message in ((small, r"shape \[4, 5, 6\] of"), (flat, "3 axes, but has 2")):
        nibabel.save(image, tmp_path / "NC/zebra.nii")
        refused(samples, "nifti", tmp_path, [1, 4, 5, 6], message)
    (tmp_path / "NC/zebra.nii").write_bytes(b"no volume")
    refused(samples, "nifti", tmp_path, [1, 4, 5, 6], "zebra.nii must be a NIfTI volume, but is")


def test_data_must_fit_the_network_and_name_a_folder(samples: Any, tmp_path: Path) -> None:
    write_idx(tmp_path)
    refused(samples, "idx", tmp_path, [1, 28, 28], r"must be \[1, 5, 4\] as in")
    with pytest.raises(
        samples.RefusedError, match=r"`data\.folder` must be a folder, but got None"
    ):
        samples.load_samples({"sample": {"shape": [1]}, "data": {"kind": "idx"}, "seed": 0})


def refused(samples: Any, kind: str, folder: Path, shape: list[int], message: str) -> None:
    with pytest.raises(samples.RefusedError, match=message) as caught:
        load(samples, kind, folder, shape)
    assert "\n" not in str(caught.value)


@pytest.mark.serial
def test_reading_real_files_is_what_io_times(tmp_path: Path) -> None:
    """Volumes large enough that reading them outweighs copying pixels from memory."""
    pytest.importorskip("torch", reason="Try: pip install 'paceline[torch]'")
    nibabel = pytest.importorskip("nibabel", reason="Try: pip install 'paceline[nifti]'")
    (tmp_path / "AD").mkdir()
    for i in range(4):
        values = RNG.normal(size=(48, 48, 48)).astype(np.float32)
        nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), tmp_path / f"AD/{i}.nii.gz")
    network = [
        {"op": "flatten", "name": "flat"},
        {"op": "linear", "name": "head", "in": 48**3, "out": 2, "bias": True},
    ]
    common = {"network": network, "sample": {"shape": [1, 48, 48, 48], "n_classes": 2}}
    io_s = {}
    with load_executor("torch").open(1) as pool:
        for kind in ("nifti", "generated"):
            data = {"kind": kind, "folder": str(tmp_path), "n_samples": 4}
            job = contract_job([2], **common, data=data, n_steps=2, n_phase_steps=5)
            (worker,) = pool.run(job, 120.0).workers
            assert np.isfinite(worker.losses).all()
            io_s[kind] = np.median([step["io"] for step in worker.phases])
    assert io_s["nifti"] > 5 * io_s["generated"]
