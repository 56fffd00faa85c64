"""Where a worker stands in a division, and whom it exchanges with."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

if TYPE_CHECKING:
    from paceline.executors.workers import protocol
else:
    import protocol  # a neighbour: Paceline is not installed here

# degrees that divide a stage, in the order in which a placement counts its parts
SPLITS = ("spatial", "filter", "channel", "tensor", "context", "expert")


class Place:
    """Where this worker stands: its replica, its stage, and its part of the stage.

    Parameters
    ----------
    division
        Of the job.
    device
        Kind of device that the mesh is of.
    """

    def __init__(self, division: dict[str, Any], device: torch.device) -> None:
        strategy = division["strategy"]
        self.n_parts = math.prod(strategy.get(name, 1) for name in SPLITS)
        shape = (strategy["data"], strategy["pipeline"], self.n_parts)
        placement = torch.tensor(division["placement"]).reshape(shape)
        here = (placement == protocol.rank()).nonzero()
        if len(here) != 1:
            raise protocol.RefusedError(
                f"Worker {protocol.rank()} must have one place in the placement, but got "
                f"{division['placement']}."
            )
        self.replica, self.stage, self.part = (int(i) for i in here[0])
        self.ranks = placement
        self.mesh: DeviceMesh | None = None
        if dist.is_initialized():
            names = ("data", "pipeline", "split")
            self.mesh = DeviceMesh(device.type, placement, mesh_dim_names=names)

    def group(self, name: str) -> Any:
        """Return the process group along `data`, `pipeline` or `split`; None when alone."""
        return None if self.mesh is None else self.mesh.get_group(name)
