"""A plan: partition, placement and when every pass runs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from paceline.errors import PacelineError
from paceline.web._answers import PlainResponse
from paceline.web._context import Context, FileName, Here
from paceline.web._places import find_cluster, find_graph

router = APIRouter(prefix="/api", tags=["plan"])


@router.get("/plan")
def plan(here: Here, file: FileName) -> PlainResponse:
    """Show a plan; its passes too where its network and its cluster are known here."""
    from paceline.reports.views import view_plan
    from paceline.scenario import load_plan

    found = load_plan(here.folder.find(file))
    run, note = _run(here, found)
    return PlainResponse(
        {
            "name": file,
            **view_plan(found, run).to_dict(),
            "workload": found.workload.get("name") or "your own module",
            "replica_batches": found.replica_batches,
            "placement": found.placement,
            "optimizer": found.optimizer,
            "precision": found.precision,
            "note": note,
        }
    )


def _run(here: Context, found: Any) -> tuple[Any, str]:
    """Return the simulated passes of a pipeline, and why there are none where there might be."""
    from paceline.planners import predicted_run

    if found.strategy.pipeline == 1:
        return None, ""
    try:
        graph = find_graph(here.folder, found)
        if graph is None:
            return None, "No passes are shown: this network is known by its own code only."
        return predicted_run(found, graph, find_cluster(here.folder, found.cluster)), ""
    except (PacelineError, KeyError, TypeError, ValueError, IndexError) as error:
        return None, f"No passes are shown: {here.without_path(str(error))}"
