"""PyTorch's worker beyond the contract: operations, real data, the user's module, limits."""

import struct
from pathlib import Path

import numpy as np
import pytest

from paceline.errors import DeviceMemoryError, ExecutionError, MissingDependencyError
from paceline.executors import Delay, FrameworkExecutor, load_executor
from paceline.testing import contract_job

pytest.importorskip("torch", reason="PyTorch is not installed. Try: pip install 'paceline[torch]'")

CONV = {"op": "conv", "dims": 2, "kernel": 3, "stride": 1, "padding": [1, 1], "bias": True}


@pytest.fixture(scope="module")
def pool():
    with load_executor("torch").open(1) as pool:
        yield pool


def run(pool, **changes):
    return pool.run(contract_job([4], **{"n_steps": 2, **changes}), 60.0).workers[0]


def linear(name: str, n_in: int, n_out: int) -> dict[str, object]:
    return {"op": "linear", "name": name, "in": n_in, "out": n_out, "bias": True}


def residual_network() -> list[dict[str, object]]:
    body = [
        CONV | {"name": "body1", "in": 4, "out": 8, "stride": 2},
        {"op": "batch_norm", "name": "norm", "dims": 2, "features": 8},
        {"op": "activation", "name": "gelu", "function": "gelu"},
        CONV | {"name": "body2", "in": 8, "out": 8},
    ]
    way = CONV | {"name": "way", "in": 4, "out": 8, "stride": 2, "kernel": 1, "padding": [0, 0]}
    return [
        CONV | {"name": "stem", "in": 1, "out": 4, "kernel": 4, "padding": [1, 2]},
        {"op": "residual", "name": "block", "body": body, "shortcut": [way]},
        {"op": "self_attention", "name": "attend", "dims": 2, "channels": 8, "inner": 2},
        {"op": "global_pool", "name": "mean", "dims": 2},
        linear("head", 8, 4),
    ]


def test_residuals_and_attention_are_built_and_timed_by_layer(pool) -> None:
    worker = run(pool, network=residual_network(), n_phase_steps=4, per_layer=True)
    names = ["stem", "block", "body1", "norm", "gelu", "body2", "way", "attend", "mean", "head"]
    times = {layer["name"]: layer for layer in worker.layers}
    assert list(times) == names and np.isfinite(worker.losses).all()
    for name in ("stem", "body1", "body2", "way", "attend", "head"):
        assert times[name]["forward_s"] > 0 and times[name]["backward_s"] > 0


def test_a_language_model_learns_which_token_follows(pool) -> None:
    width = 16
    network = [
        {"op": "embedding", "name": "embed", "vocabulary": 11, "width": width, "length": 8},
        {
            "op": "residual",
            "name": "block",
            "body": [
                {"op": "layer_norm", "name": "norm", "features": width},
                {"op": "causal_attention", "name": "attend", "width": width, "heads": 2},
            ],
            "shortcut": [],
        },
        linear("head", width, 11),
    ]
    sample = {"shape": [8], "n_classes": 11, "vocabulary": 11}
    adam = {"name": "adam", "learning_rate": 0.02}
    losses = run(pool, network=network, sample=sample, optimizer=adam, n_steps=40).losses
    assert losses[-1] < 0.7 * losses[0]


def test_an_autoencoder_learns_its_input(pool) -> None:
    network = [
        {"op": "flatten", "name": "flat"},
        linear("encode", 256, 16),
        {"op": "activation", "name": "active", "function": "sigmoid"},
        linear("decode", 16, 256),
    ]
    losses = run(
        pool,
        network=network,
        loss="mse",
        n_steps=40,
        optimizer={"name": "adam", "learning_rate": 0.01},
    ).losses
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"network": [{"op": "fold", "name": "a"}]}, "`op` must be one of conv, .*'fold'"),
        ({"network": [linear("a", 3, 4)]}, "must fit its samples"),
        ({"network": [CONV | {"name": "a"}]}, "PyTorch can build, but: KeyError"),
        ({"optimizer": {"name": "lion", "learning_rate": 1.0}}, "one of adam, adamw, .*sgd"),
        ({"data": {"kind": "idx", "folder": "/nowhere"}}, "must hold a file train-images"),
        ({"data": {"kind": "sound"}}, "`data.kind` must be one of generated"),
        ({"module": {"file": "/nowhere.py", "name": "Net"}}, "must be a Python file"),
    ],
)
def test_what_cannot_be_built_is_refused_without_a_new_start(pool, changes, reason) -> None:
    pool.start()
    before = pool.pids
    with pytest.raises(ExecutionError, match=reason):
        run(pool, **changes)
    assert pool.pids == before


def test_the_users_own_module_is_trained_and_timed(pool, tmp_path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, width):\n"
        "        super().__init__()\n"
        "        self.a = nn.Linear(256, width)\n"
        "        self.act = nn.ReLU(inplace=True)\n"
        "        self.b = nn.Linear(width, 4)\n"
        "    def forward(self, x):\n"
        "        print('hello')\n"
        "        return self.b(self.act(self.a(x.flatten(1))))\n"
    )
    module = {"file": str(path), "name": "Net", "arguments": {"width": 8}}
    worker = run(
        pool, network=(), module=module, n_phase_steps=2, per_layer=True, return_weights=True
    )
    assert [layer["name"] for layer in worker.layers] == ["a", "act", "b"]
    assert len(worker.weights) == 257 * 8 + 9 * 4


def test_real_images_are_read_from_idx_files(pool, tmp_path) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (30, 16, 16), dtype=np.uint8)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(
        struct.pack(">IIII", 2051, 30, 16, 16) + images.tobytes()
    )
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(
        struct.pack(">II", 2049, 30) + bytes(i % 4 for i in range(30))
    )
    worker = run(pool, data={"kind": "idx", "folder": str(tmp_path)}, n_steps=12, n_phase_steps=1)
    assert np.isfinite(worker.losses).all() and worker.phases[0]["io"] > 0


def test_real_images_are_read_from_cifar_files(pool, tmp_path) -> None:
    rng = np.random.default_rng(0)
    for number in range(1, 6):
        records = rng.integers(0, 256, (3, 3073), dtype=np.uint8)
        records[:, 0] %= 4
        (tmp_path / f"data_batch_{number}.bin").write_bytes(records.tobytes())
    network = [{"op": "flatten", "name": "flat"}, linear("head", 3072, 4)]
    worker = run(
        pool,
        network=network,
        sample={"shape": [3, 32, 32], "n_classes": 4},
        data={"kind": "cifar10", "folder": str(tmp_path)},
        n_steps=6,
    )
    assert np.isfinite(worker.losses).all()


def test_losses_and_times_are_of_every_step(pool) -> None:
    worker = run(pool, n_warmup=3, n_steps=4, n_phase_steps=2)
    assert len(worker.step_s) == 4 and len(worker.losses) == 9
    assert min(worker.step_s) > 0


def test_a_planted_delay_is_in_the_real_step_too(pool) -> None:
    slow = Delay(phase="update", worker=0, seconds=0.05)
    assert min(run(pool, delays=[slow]).step_s) > 0.05


def test_another_shape_is_another_set_of_samples(pool) -> None:
    network = [{"op": "flatten", "name": "flat"}, linear("head", 9, 4)]
    small = run(pool, network=network, sample={"shape": [9], "n_classes": 4}).losses
    again = run(pool).losses
    assert run(pool).losses == again and small != again


def test_a_job_over_its_memory_fails_and_the_next_one_runs() -> None:
    large = [{"op": "flatten", "name": "flat"}, linear("a", 256, 2_000_000)]
    with load_executor("torch").open(1, memory_bytes=1_200_000_000) as pool:
        with pytest.raises(DeviceMemoryError, match="bytes of 1200000000"):
            pool.run(contract_job([4], network=large), 60.0)
        assert pool.run(contract_job([4]), 60.0).step_s


def test_a_network_larger_than_all_memory_fails_as_such(pool) -> None:
    huge = [{"op": "flatten", "name": "flat"}, linear("a", 256, 10**12)]
    with pytest.raises(DeviceMemoryError, match="memory"):
        run(pool, network=huge)
    assert run(pool).step_s


def test_workers_that_are_launched_by_a_command_take_this_interpreter() -> None:
    executor = FrameworkExecutor("torch", launch=lambda rank: ["env", f"LAUNCHED={rank}"])
    with executor.warm().open(1) as pool:
        assert run(pool).step_s


def test_an_executor_without_its_framework_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setenv("PACELINE_HOME", "/nowhere")
    executor = load_executor("mxnet")
    assert "paceline executors install mxnet" in executor.readiness()
    with pytest.raises(MissingDependencyError, match="paceline executors install mxnet"):
        executor.open(1)


def test_an_interpreter_that_is_none_is_said() -> None:
    executor = FrameworkExecutor("torch", python=Path("/no/python"))
    assert "'/no/python' is not" in executor.readiness()
    with pytest.raises(ValueError, match="'/no/python' is not"):
        executor.open(1)


def test_forked_workers_train_as_started_ones_and_leave_nothing() -> None:
    executor, job = load_executor("torch"), contract_job([4, 4], n_steps=3, return_weights=True)
    warm = executor.warm()
    try:
        with warm.open(2) as forked:
            found, pids = forked.run(job, 60.0), forked.pids
        with executor.open(2) as started:
            expected = started.run(job, 60.0)
    finally:
        warm.close()
    for ours, theirs in zip(found.workers, expected.workers, strict=True):
        assert ours.losses == pytest.approx(theirs.losses, rel=1e-6)
        assert ours.weights == pytest.approx(theirs.weights, abs=1e-6)
        assert len(ours.warmup_s) == job.n_warmup and min(ours.warmup_s) > 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
