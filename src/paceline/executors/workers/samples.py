"""What a worker trains on: generated samples, or real ones from a folder, as plain bytes.

Standard library only (NIfTI volumes also need nibabel), no syntax newer than Python 3.8. All
frameworks see the same bytes: a pixel b stands for the number b / 255.
"""

from __future__ import annotations

import gzip
import importlib
import os
import random
import struct
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.executors.workers.protocol import RefusedError
else:
    from protocol import RefusedError  # a neighbour: Paceline is not installed here

_MAX_CACHED = 4  # sets of a study alternate from job to job; making one takes milliseconds
_cache: dict[str, Samples] = {}  # in the order of their last use


class Samples:
    """Inputs and labels of a set, read in consecutive runs and counted modulo its size.

    Attributes
    ----------
    n_samples
        Size of the set.
    shape
        Of one input.
    item
        What an input is made of: ``"B"`` pixels (to be divided by 255), ``"i"`` tokens (32 bit),
        ``"f"`` numbers (32 bit).
    """

    def __init__(
        self, inputs: _Memory | _Files | _Volumes, labels: array[int], shape: list[int], item: str
    ) -> None:
        self._inputs, self._labels = inputs, labels
        self.shape, self.item, self.n_samples = shape, item, len(labels)

    def read(self, start: int, count: int) -> bytearray:
        """Return the bytes of some inputs, one after the other, free to be written to."""
        result = bytearray()
        for begin, end in self._runs(start, count):
            result += self._inputs.read(begin, end)
        return result

    def labels(self, start: int, count: int) -> array[int]:
        """Return the classes of some inputs (64 bit)."""
        result = array("q")
        for begin, end in self._runs(start, count):
            result += self._labels[begin:end]
        return result

    def _runs(self, start: int, count: int) -> list[tuple[int, int]]:
        runs = []
        while count > 0:
            begin = start % self.n_samples
            taken = min(count, self.n_samples - begin)
            runs.append((begin, begin + taken))
            start, count = start + taken, count - taken
        return runs


def load_samples(job: dict[str, Any]) -> Samples:
    """Return the samples that a job asks for.

    Tokens have no labels of their own: `read` gives ``length + 1`` tokens per sample, whose last
    ``length`` are the targets of its first ``length``.
    """
    key = repr((job["sample"], job["data"], job["seed"]))
    samples = _cache.pop(key, None) or _make(job["sample"], job["data"], job["seed"])
    _cache[key] = samples
    if len(_cache) > _MAX_CACHED:
        del _cache[next(iter(_cache))]
    return samples


def _make(sample: dict[str, Any], data: dict[str, Any], seed: int) -> Samples:
    kind = data.get("kind", "generated")
    if kind == "generated":
        make = _tokens if sample.get("vocabulary") else _pixels
        return make(sample, int(data.get("n_samples", 1024)), random.Random(seed))
    readers = {"idx": _idx, "cifar10": _cifar10, "nifti": _nifti}
    if kind not in readers:
        known = ", ".join(["generated", *sorted(readers)])
        raise RefusedError(f"`data.kind` must be one of {known}, but got {kind!r}.")
    folder = data.get("folder")
    if not isinstance(folder, str):
        raise RefusedError(f"`data.folder` must be a folder, but got {folder!r}.")
    samples = _sound(readers[kind], Path(folder))
    _check_labels(samples, sample, folder)
    if _size(samples.shape) != _size(sample["shape"]):
        raise RefusedError(
            f"`sample.shape` must be {samples.shape} as in {data['folder']}, "
            f"but got {sample['shape']}."
        )
    samples.shape = list(sample["shape"])
    return samples


def _sound(read: Callable[[Path], Samples], folder: Path) -> Samples:
    try:
        return read(folder)
    except (OSError, EOFError, struct.error, zlib.error) as error:
        raise RefusedError(f"Files in {folder} must be sound, but one is not: {error}.") from error


def _check_labels(samples: Samples, sample: dict[str, Any], folder: str) -> None:
    if not samples.n_samples:
        raise RefusedError(f"{folder} must hold at least one sample, but is empty.")
    n_classes, largest = sample.get("n_classes"), max(samples.labels(0, samples.n_samples))
    if n_classes and largest >= n_classes:
        raise RefusedError(
            f"Labels in {folder} must be below `n_classes` = {n_classes}, but one is {largest}."
        )


def _size(shape: list[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


class _Memory:
    def __init__(self, content: bytes, record: int) -> None:
        self._content, self._record = memoryview(content), record

    def read(self, begin: int, end: int) -> memoryview:
        return self._content[begin * self._record : end * self._record]


def _pixels(sample: dict[str, Any], n_samples: int, source: random.Random) -> Samples:
    """Draw noise over one pattern per class: a network can learn it."""
    size, n_classes = _size(sample["shape"]), int(sample.get("n_classes") or 10)
    pattern_bits = int.from_bytes(b"\xc0" * size, "little")
    noise_bits = int.from_bytes(b"\x3f" * size, "little")
    patterns = [source.getrandbits(8 * size) & pattern_bits for _ in range(n_classes)]
    labels = array("q", [source.randrange(n_classes) for _ in range(n_samples)])
    content = bytearray()
    for label in labels:
        pixels = patterns[label] | (source.getrandbits(8 * size) & noise_bits)
        content += pixels.to_bytes(size, "little")
    return Samples(_Memory(bytes(content), size), labels, list(sample["shape"]), "B")


def _tokens(sample: dict[str, Any], n_samples: int, source: random.Random) -> Samples:
    """Draw sequences in which a token says what the next one is, nine times out of ten."""
    length, vocabulary = _size(sample["shape"]) + 1, int(sample["vocabulary"])
    follower = list(range(vocabulary))
    source.shuffle(follower)
    content = array("i")
    for _ in range(n_samples):
        token = source.randrange(vocabulary)
        for _ in range(length):
            content.append(token)
            known = source.random() < 0.9
            token = follower[token] if known else source.randrange(vocabulary)
    memory = _Memory(content.tobytes(), 4 * length)
    return Samples(memory, array("q", bytes(8 * n_samples)), [length], "i")


class _Files:
    """Records of equal size in open files; every read is a real one."""

    def __init__(self, paths: list[Path], header: int, record: int, skip: int) -> None:
        self._header, self._record, self._skip = header, record, skip
        self._files = [os.open(str(path), os.O_RDONLY) for path in paths]
        self._counts = [(path.stat().st_size - header) // record for path in paths]

    def read(self, begin: int, end: int) -> bytes:
        parts = []
        for handle, count in zip(self._files, self._counts):  # noqa: B905  # Python 3.8
            if begin < count and end > 0:
                parts.append(self._records(handle, max(begin, 0), min(end, count)))
            begin, end = begin - count, end - count
        return b"".join(parts)

    def _records(self, handle: int, begin: int, end: int) -> bytes:
        size = (end - begin) * self._record
        content = os.pread(handle, size, self._header + begin * self._record)
        if not self._skip:
            return content
        starts = range(self._skip, len(content), self._record)
        return b"".join(content[i : i + self._record - self._skip] for i in starts)


def _found(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise RefusedError(f"{folder} must hold a file {' or '.join(names)}, but does not.")


def _idx(folder: Path) -> Samples:
    """Open MNIST or Fashion-MNIST: IDX files, packed or not."""
    images = _found(folder, "train-images-idx3-ubyte", "train-images-idx3-ubyte.gz")
    labels = _found(folder, "train-labels-idx1-ubyte", "train-labels-idx1-ubyte.gz")
    with _opened(images) as handle:
        magic, n, height, width = _header(handle, ">IIII", images)
        if magic != 2051:
            raise RefusedError(f"{images} must be an IDX file of images, but is not.")
        packed = handle.read() if images.suffix == ".gz" else None
    with _opened(labels) as handle:
        if _header(handle, ">II", labels)[0] != 2049:
            raise RefusedError(f"{labels} must be an IDX file of labels, but is not.")
        classes = array("q", list(handle.read()))
    if len(classes) != n:
        raise RefusedError(f"{labels} must hold {n} labels, but has {len(classes)}.")
    size = height * width
    n_bytes = images.stat().st_size - 16 if packed is None else len(packed)
    if n_bytes != n * size:
        raise RefusedError(f"{images} must hold {n * size} bytes of pixels, but has {n_bytes}.")
    inputs = _Memory(packed, size) if packed is not None else _Files([images], 16, size, 0)
    return Samples(inputs, classes, [1, height, width], "B")


def _header(handle: Any, form: str, path: Path) -> tuple[Any, ...]:
    content = handle.read(struct.calcsize(form))
    if len(content) < struct.calcsize(form):
        raise RefusedError(f"{path} must be an IDX file, but it is shorter than its header.")
    return struct.unpack(form, content)


def _opened(path: Path) -> Any:
    return gzip.open(str(path), "rb") if path.suffix == ".gz" else path.open("rb")


def _cifar10(folder: Path) -> Samples:
    """Open CIFAR-10's binary version: a byte of label before 3 x 32 x 32 pixels."""
    paths = [_found(folder, f"data_batch_{i}.bin") for i in range(1, 6)]
    labels = array("q")
    for path in paths:
        content = path.read_bytes()
        if not content or len(content) % 3073:
            raise RefusedError(
                f"{path} must hold records of 3073 bytes, but has {len(content)} bytes."
            )
        labels.extend(content[::3073])
    return Samples(_Files(paths, 0, 3073, 1), labels, [3, 32, 32], "B")


class _Volumes:
    """NIfTI files, one sample each, scaled to mean 0 and deviation 1."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths

    def read(self, begin: int, end: int) -> bytes:
        return b"".join(self.volume(i).tobytes() for i in range(begin, end))

    def volume(self, index: int) -> Any:
        nibabel = importlib.import_module("nibabel")
        values = nibabel.load(str(self._paths[index])).get_fdata(dtype="float32")
        return (values - values.mean()) / (values.std() or 1.0)


def _nifti(folder: Path) -> Samples:
    """Open a folder with one folder of NIfTI volumes per class."""
    try:
        importlib.import_module("nibabel")
    except ImportError:
        raise RefusedError(
            "NIfTI volumes need nibabel in the worker's interpreter. Try: pip install nibabel"
        ) from None
    paths = sorted(p for p in folder.glob("*/*.nii*") if p.suffix in (".nii", ".gz"))
    if not paths:
        raise RefusedError(f"{folder} must hold one folder of .nii files per class, but does not.")
    classes = sorted({p.parent.name for p in paths})
    labels = array("q", [classes.index(p.parent.name) for p in paths])
    shape = _volume_shape(paths[0])
    for path in paths:
        if _volume_shape(path) != shape:
            raise RefusedError(
                f"All volumes must have the shape {list(shape)} of {paths[0]}, but {path} has "
                f"{list(_volume_shape(path))}."
            )
    return Samples(_Volumes(paths), labels, [1, *shape], "f")


def _volume_shape(path: Path) -> tuple[int, ...]:
    """Return the shape that a volume's header says; its values are not read."""
    try:
        shape: tuple[int, ...] = importlib.import_module("nibabel").load(str(path)).shape
    except Exception as error:  # nibabel has many, and not all are its own
        raise RefusedError(f"{path} must be a NIfTI volume, but is not: {error}.") from error
    if len(shape) != 3:
        raise RefusedError(f"{path} must be a volume of 3 axes, but has {len(shape)}.")
    return shape
