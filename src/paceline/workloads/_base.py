"""What every workload can say of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from paceline.errors import InfeasibleError, InvalidInputError
from paceline.space import Parameter
from paceline.workloads._graph import LayerGraph
from paceline.workloads._layers import layer_table, sum_layers
from paceline.workloads._network import Layer, Network
from paceline.workloads._network_graph import layer_graph
from paceline.workloads._values import LEARNING_RATES, OPTIMIZERS, categorical, complete, numeric

Values = Mapping[str, Any]

# how any workload is trained
TRAINING = (categorical("optimizer", *OPTIMIZERS), numeric("learning_rate", *LEARNING_RATES))
TRAINING_DEFAULTS = {"optimizer": "adam", "learning_rate": 0.001}


class Workload(ABC):
    """Something that can be trained, described by intrinsic parameters.

    `values` may be a whole trial: names of the run (`n_devices`, `device_batch` …) are ignored,
    missing parameters take their defaults, other names are refused.

    Parameters
    ----------
    name
        How it is loaded.
    summary
        One line for people.
    parameters
        Names and the values that studies vary them over; numbers outside are allowed.
    defaults
        One value per parameter.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        parameters: tuple[Parameter, ...],
        defaults: Mapping[str, Any],
    ) -> None:
        self.name = name
        self.summary = summary
        self.parameters = (*parameters, *TRAINING)
        self.defaults = {**defaults, **TRAINING_DEFAULTS}

    def __repr__(self) -> str:
        return f"<workload {self.name}: {self.summary}>"

    @abstractmethod
    def _network(self, values: dict[str, Any]) -> Network:
        """Return the network of complete and checked values."""

    def complete(self, values: Values | None = None) -> dict[str, Any]:
        """Return a value for every parameter, the default where none is given.

        Raises
        ------
        UnknownNameError
            When a name or a level is not known.
        InvalidInputError
            When a number breaks the rule of its parameter.
        """
        return complete(self.parameters, self.defaults, values or {})

    def network(self, values: Values | None = None) -> Network:
        """Return the network.

        Raises
        ------
        InfeasibleError
            When these values give no network; says which layer and why.
        """
        return self._built(values)[0]

    def layers(self, values: Values | None = None) -> tuple[Layer, ...]:
        """Return the layer table of the network."""
        return self._built(values)[1]

    def graph(self, values: Values | None = None) -> LayerGraph:
        """Return the layers with all that an oracle must know of them, the loss as the last.

        Examples
        --------
        >>> from paceline.workloads import load_workload
        >>> print(load_workload("lenet5").graph())
        lenet5: 14 layers, 45278 parameters, 7.23e+05 FLOP forward a sample
        """
        names = {parameter.name for parameter in TRAINING}
        given = {n: v for n, v in self.complete(values).items() if n not in names}
        return layer_graph(self.network(values), name=self.name, values=given.items())

    def infeasible(self, values: Values | None = None) -> str:
        """Return why these values cannot be built and trained; empty when they can.

        With `device_batch` (or `global_batch` and `n_devices`) among the values, batch
        normalisation over a single number, which cannot be trained, is known as well.
        """
        try:
            layers = self.layers(values)
        except InfeasibleError as error:
            return error.reason
        return _single_number(layers, values or {})

    def features(self, values: Values | None = None, device_batch: int = 1) -> dict[str, float]:
        """Return what one worker computes and holds in one step.

        Returns
        -------
        dict
            `forward_flop` and `activation_bytes` of `device_batch` samples, and
            `weight_bytes` and `n_parameters`, which no batch changes.
        """
        if device_batch < 1:
            raise InvalidInputError(f"`device_batch` must be positive, but got {device_batch!r}.")
        sums = sum_layers(self.layers(values))
        scaled = ("forward_flop", "activation_bytes")
        return {
            name: float(value * (device_batch if name in scaled else 1))
            for name, value in sums.items()
        }

    def optimizer(self, values: Values | None = None) -> dict[str, Any]:
        """Return the optimizer as a job names it."""
        complete_values = self.complete(values)
        return {
            "name": complete_values["optimizer"],
            "learning_rate": complete_values["learning_rate"],
        }

    def job_keywords(self, values: Values | None = None) -> dict[str, Any]:
        """Return `network`, `sample`, `loss` and `optimizer` of a job."""
        network = self.network(values)
        return {
            "network": network.operations,
            "sample": network.sample,
            "loss": network.loss,
            "optimizer": self.optimizer(values),
        }

    def _built(self, values: Values | None) -> tuple[Network, tuple[Layer, ...]]:
        network = self._network(self.complete(values))
        return network, layer_table(network)


def _single_number(layers: tuple[Layer, ...], values: Values) -> str:
    """Say which batch normalisation would see one number per channel."""
    share = values.get("device_batch")
    if share is None and "global_batch" in values:
        share = values["global_batch"] // values.get("n_devices", 1)
    if share != 1:
        return ""
    for layer in layers:
        if layer.kind == "batch_norm" and set(layer.output_shape[1:]) == {1}:
            return (
                f"{layer.name}: batch normalisation needs more than one number per channel, but "
                f"a batch of 1 on a device leaves one; take a larger batch or input."
            )
    return ""
