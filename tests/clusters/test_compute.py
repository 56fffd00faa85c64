"""What layers and updates cost a device."""

from dataclasses import replace

import numpy as np
import pytest

from paceline.clusters import Device, Kernel, around_time, kernel_time, update_time
from paceline.errors import InvalidInputError

DEVICE = Device(
    name="d",
    peak_flops={"float32": 1e12, "float16": 4e12},
    memory_bytes=1e9,
    memory_bandwidth=1e11,
    efficiency={"default": 0.5, "conv": 1.0},
    memory_efficiency=1.0,
)


def test_a_layer_is_bound_by_arithmetic_or_by_memory() -> None:
    assert kernel_time(DEVICE, flop=1e9) == pytest.approx(2e-3)
    assert kernel_time(DEVICE, flop=1e9, kind="conv") == pytest.approx(1e-3)
    assert kernel_time(DEVICE, flop=1e9, input_bytes=1e9, kind="conv") == pytest.approx(1e-2)
    assert kernel_time(DEVICE, weight_bytes=1e9, backward=True) == pytest.approx(2e-2)


def test_small_layers_are_slower_than_their_work() -> None:
    slow = replace(DEVICE, half_flop=1e9, launch_s=1e-3)
    assert kernel_time(slow, flop=1e9, kind="conv") == pytest.approx(3e-3)
    assert kernel_time(slow) == pytest.approx(1e-3)


def test_layers_along_the_last_axis_have_their_own_kinds() -> None:
    batches = np.array([1, 2, 4])[:, None]
    times = kernel_time(DEVICE, kind=["conv", "pool"], flop=batches * np.array([1e9, 1e9]))
    assert times.shape == (3, 2)
    assert times[:, 1] == pytest.approx(2 * times[:, 0])


def test_a_calibrated_kind_follows_its_own_line() -> None:
    line = Kernel(launch_s=1e-5, s_per_flop=1e-11, s_per_output_byte=1e-9)
    device = replace(DEVICE, kernels={"conv": line})
    expected = 1e-5 + 1e9 * 1e-11 + 1e6 * 1e-9
    figures = {"flop": 1e9, "output_bytes": 1e6, "input_bytes": 1e9}
    assert kernel_time(device, kind="conv", **figures) == pytest.approx(expected)
    assert kernel_time(device, kind="conv", backward=True, **figures) == kernel_time(
        DEVICE, kind="conv", backward=True, **figures
    )
    both = kernel_time(device, kind=["conv", "pool"], flop=np.array([1e9, 1e9]))
    assert both == pytest.approx([1e-5 + 1e-2, 2e-3])
    half = kernel_time(device, kind="conv", flop=1e9, precision="float16")
    assert half == pytest.approx(1e-5 + 1e-2 / 4)


def test_volumes_are_convolved_as_images_unless_they_were_calibrated() -> None:
    assert kernel_time(DEVICE, flop=1e9, kind="conv3d") == kernel_time(DEVICE, 1e9, kind="conv")
    lines = {"conv": Kernel(launch_s=1e-3), "conv3d_backward": Kernel(launch_s=5e-3)}
    known = replace(DEVICE, kernels=lines)
    assert kernel_time(known, flop=1e9, kind="conv3d") == pytest.approx(1e-3)
    assert kernel_time(known, flop=1e9, kind="conv3d", backward=True) == pytest.approx(5e-3)


def test_an_update_moves_the_state_of_its_optimizer() -> None:
    assert update_time(DEVICE, 1e9, optimizer="sgd") == pytest.approx(3e-2)
    assert update_time(DEVICE, [0, 1e9]) == pytest.approx([0, 7e-2])
    measured = replace(
        DEVICE, kernels={"update_adam": Kernel(launch_s=1e-3, s_per_weight_byte=1e-9)}
    )
    assert update_time(measured, [0, 1e6]) == pytest.approx([0, 2e-3])
    with pytest.raises(InvalidInputError, match="must be one of sgd"):
        update_time(DEVICE, 1, optimizer="lion")


def test_a_precision_that_the_device_lacks_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="float32, float16"):
        kernel_time(DEVICE, flop=1.0, precision="float8")


def test_only_measured_exchanges_have_work_around_them() -> None:
    line = Kernel(launch_s=1e-3, s_per_output_byte=1e-9)
    device = replace(DEVICE, kernels={"divided_all_gather": line})
    sizes = np.array([0.0, 1e6])
    assert around_time(device, "divided_all_gather", sizes) == pytest.approx([0.0, 2e-3])
    assert around_time(device, "divided_all_reduce", sizes) == pytest.approx([0.0, 0.0])
