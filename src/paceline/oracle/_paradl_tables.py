"""The networks that ParaDL's oracle was run on, as its own layer tables have them.

They differ from the networks that are trained, and its printed digits follow from them: images of
226 pixels, so that ResNet-50 begins with 113 x 113 and VGG-16 ends with 8 x 8 (and 169.8 instead
of 138.4 million weights); no shortcut convolutions in ResNet-50 (22.7 instead of 25.6 million); no
biases and no weights of normalisation; pooling counted as C F K^2 operations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paceline.errors import UnknownNameError
from paceline.oracle._paradl_nouns import ParadlLayers


@dataclass(frozen=True, slots=True)
class _Row:
    kind: str
    channels: int
    filters: int
    kernel: int
    width_in: int
    width_out: int

    @property
    def n_inputs(self) -> int:
        return self.channels * self.width_in**2

    @property
    def n_outputs(self) -> int:
        return self.filters * self.width_out**2

    @property
    def n_weights(self) -> int:
        has_weights = self.kind in ("conv", "linear")
        return self.channels * self.filters * self.kernel**2 if has_weights else 0

    @property
    def n_operations(self) -> int:
        """Twice the forward pass (ParaDL's backward), and one per weight for its gradient."""
        window = self.channels * self.filters * self.kernel**2
        forward = {
            "conv": 2 * window * self.width_out**2,
            "pool": window * self.width_out**2,
            "linear": window,
            "norm": 4 * self.n_inputs,
            "point": self.n_outputs,
            "dropout": 0,
        }
        return 2 * forward[self.kind] + self.n_weights


def paradl_layers(network: str, sample_s: float | None = None) -> ParadlLayers:
    """Return one of ParaDL's own layer tables, ``resnet50`` or ``vgg16``.

    Parameters
    ----------
    network
        Which.
    sample_s
        Seconds of a sample on one device; ParaDL's profile of a V100 where not given.
    """
    if network not in _TABLES:
        raise UnknownNameError("network of ParaDL", network, _TABLES)
    rows, profiled_s = _TABLES[network][0](), _TABLES[network][1]
    flop = np.array([row.n_operations for row in rows], dtype=float)
    split = np.array([row.kind == "conv" for row in rows])
    halo = [row.channels * ((row.kernel - 1) // 2) * row.width_in for row in rows]
    return ParadlLayers(
        inputs=np.array([row.n_inputs for row in rows], dtype=float),
        outputs=np.array([row.n_outputs for row in rows], dtype=float),
        weights=np.array([row.n_weights for row in rows], dtype=float),
        compute_s=(sample_s or profiled_s) * flop / flop.sum(),
        split=split,
        halo=np.array(halo, dtype=float) * split,
        filters=np.array([row.filters for row in rows], dtype=float),
        channels=np.array([row.channels for row in rows], dtype=float),
        positions=np.array([row.width_out**2 for row in rows], dtype=float),
    )


def _resnet50() -> list[_Row]:
    rows = [
        _Row("conv", 3, 64, 7, 226, 113),
        _Row("norm", 64, 64, 0, 113, 113),
        _Row("point", 64, 64, 0, 113, 113),
        _Row("pool", 64, 64, 3, 113, 56),
    ]
    channels, width = 64, 56
    for n_blocks, middle in ((3, 64), (4, 128), (6, 256), (3, 512)):
        for block in range(n_blocks):
            after = width // 2 if block == 0 and middle > 64 else width
            rows += _bottleneck(channels, middle, width, after)
            channels, width = 4 * middle, after
    return [*rows, _Row("pool", 2048, 2048, 7, 7, 1), _Row("linear", 2048, 1000, 1, 1, 1)]


def _bottleneck(channels: int, middle: int, width: int, after: int) -> list[_Row]:
    narrow = [_Row(kind, middle, middle, 0, after, after) for kind in ("norm", "point")]
    wide = [_Row(kind, 4 * middle, 4 * middle, 0, after, after) for kind in ("norm", "point")]
    return [
        _Row("conv", channels, middle, 1, width, after),
        *narrow,
        _Row("conv", middle, middle, 3, after, after),
        *narrow,
        _Row("conv", middle, 4 * middle, 1, after, after),
        *wide,
        wide[-1],  # the addition, then its activation
    ]


def _vgg16() -> list[_Row]:
    rows, channels, width = [], 3, 226
    for n_convolutions, filters in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(n_convolutions):
            rows.append(_Row("conv", channels, filters, 3, width, width))
            rows.append(_Row("point", filters, filters, 0, width, width))
            channels = filters
        after = (width + 1) // 2
        rows.append(_Row("pool", filters, filters, 2, width, after))
        width = after
    dropped = [_Row(kind, 4096, 4096, 0, 1, 1) for kind in ("point", "dropout")]
    first = _Row("linear", 512, 4096, 8, 8, 1)
    return [
        *rows,
        first,
        *dropped,
        _Row("linear", 4096, 4096, 1, 1, 1),
        *dropped,
        _Row("linear", 4096, 1000, 1, 1, 1),
    ]


# with the seconds of a sample that ParaDL profiled on one V100
_TABLES = {"resnet50": (_resnet50, 0.003119502), "vgg16": (_vgg16, 0.008245589)}
