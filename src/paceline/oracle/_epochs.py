"""How many samples an epoch has, where a network is known for one dataset."""

from __future__ import annotations

from paceline.workloads import LayerGraph

# training sets; the networks are published with results on them
_IMAGENET = 1_281_167
_SAMPLES = {"mnist": 60_000, "fashion-mnist": 60_000, "cifar10": 50_000}
_MNIST = ("mlp", "autoencoder")


def known_samples(graph: LayerGraph) -> int | None:
    """Return the samples of an epoch of a shipped network; None where there is no one dataset.

    Networks on images with 1000 classes: ImageNet-1k. LeNet-5: as its ``dataset`` says.
    """
    values = dict(graph.values)
    if values.get("dataset") in _SAMPLES:
        return _SAMPLES[str(values["dataset"])]
    if graph.name in _MNIST:
        return _SAMPLES["mnist"]
    return _IMAGENET if values.get("n_classes") == 1000 else None
