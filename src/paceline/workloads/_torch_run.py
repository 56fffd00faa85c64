"""Runs of a module without data: on the meta device to count, as if on a CPU to see what is kept.

Imported only where a module is traced: the rest of Paceline needs no PyTorch.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from paceline.errors import InvalidInputError
from paceline.workloads._network import Shape, format_shape
from paceline.workloads._torch_record import (
    Keeper,
    Key,
    Place,
    Recorder,
    Whereabouts,
    without_data,
)

LOSS = "loss"


def counted(
    module: nn.Module, shape: Shape, vocabulary: int | None, loss: str, batch: int
) -> tuple[dict[Key, Place], Tensor]:
    """Return every place of a step on the meta device, and the module's output.

    Raises
    ------
    InvalidInputError
        When an operation cannot run without data, or two counts of FLOP disagree.
    """
    empty = without_data(module, "meta")
    given, target = (_given(shape, vocabulary, batch, "meta") for _ in range(2))
    where = Whereabouts(empty)
    recorder = Recorder(empty, where, given)
    with FlopCounterMode(display=False) as counter:
        try:
            with recorder:
                output = _checked(empty(given), batch)
                forward = counter.get_total_flops()
                with where.inside(LOSS):
                    value = _loss(output, target, loss)
                recorder.is_backward = True
                torch.autograd.backward(value)
        except InvalidInputError:
            raise
        except Exception as error:
            raise _untraceable(error, recorder, shape) from error
        finally:
            where.close()
    for key, (first, last) in where.ends.items():
        if key in recorder.places:
            recorder.places[key].given, recorder.places[key].returned = first, last
    _check_counts(recorder.places, forward, counter.get_total_flops())
    _check_export(without_data(module, "meta"), given, forward)
    return recorder.places, output


def kept(
    module: nn.Module, shape: Shape, vocabulary: int | None, loss: str, batch: int
) -> dict[Key, int]:
    """Return the bytes that autograd keeps at every place, as on a CPU."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        empty = without_data(module, "cpu")
        given = _given(shape, vocabulary, batch, "cpu")
        where = Whereabouts(empty)
        try:
            keeper = Keeper(empty, where)
            with keeper:
                output = empty(given)
                with where.inside(LOSS):
                    _loss(output, given, loss)
        finally:
            where.close()
        return keeper.kept


def _given(shape: Shape, vocabulary: int | None, batch: int, device: str) -> Tensor:
    kind = torch.long if vocabulary else torch.float32
    return torch.zeros(batch, *shape, dtype=kind, device=device)


def _checked(output: Any, batch: int) -> Tensor:
    if not isinstance(output, Tensor):
        raise InvalidInputError(
            f"The module must return one tensor, but returned a {type(output).__name__}: wrap it "
            f"in a module that returns the tensor which the loss is taken of."
        )
    if output.ndim < 2 or output.shape[0] != batch:
        raise InvalidInputError(
            f"The module must return a row of numbers per sample, but for {batch} samples "
            f"returned {format_shape(tuple(output.shape))}."
        )
    if not output.requires_grad:
        raise InvalidInputError("The module must have weights that its output depends on.")
    return output


def _loss(output: Tensor, given: Tensor, loss: str) -> Tensor:
    if loss == "mse":
        if output[0].numel() != given[0].numel():
            raise InvalidInputError(
                f"The output must be as large as the input for the loss 'mse', but is "
                f"{format_shape(tuple(output.shape[1:]))}."
            )
        return functional.mse_loss(output.flatten(1), given.flatten(1))
    rows = output.flatten(0, -2)
    labels = torch.zeros(len(rows), dtype=torch.long, device=output.device)
    return functional.cross_entropy(rows, labels)


def _untraceable(error: Exception, recorder: Recorder, shape: Shape) -> InvalidInputError:
    first = " ".join((str(error).strip() or type(error).__name__).splitlines()[0].split())
    return InvalidInputError(
        f"The module must run on an input of {format_shape(shape)} without data, but "
        f"{recorder.failing or 'its Python'} cannot: {first.split('. ')[0].rstrip('.')}."
    )


def _check_counts(places: dict[Key, Place], forward: int, both: int) -> None:
    """Compare the sum over places with what torch's counter has counted of the same run."""
    ours = sum(p.forward_flop for p in places.values())
    ours_both = ours + sum(p.backward_flop for p in places.values())
    if (ours, ours_both) != (forward, both):
        raise InvalidInputError(
            f"The layers of a module must have the FLOP that torch counts, but they have {ours} "
            f"forward and {ours_both - ours} backward and torch counts {forward} and "
            f"{both - forward}: an operation is made of others that only torch looks into."
        )


def _check_export(module: nn.Module, given: Tensor, forward: int) -> None:
    """Compare with the exported module; what cannot be exported was traced as it ran."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = torch.export.export(module, (given,)).module()
            with FlopCounterMode(display=False) as counter:
                exported(given)
    except Exception:
        return
    if not math.isclose(counter.get_total_flops(), forward):
        raise InvalidInputError(
            f"A module must do the same whenever it runs, but has {forward} FLOP for {len(given)} "
            f"samples where it ran and {counter.get_total_flops()} where it was exported."
        )
