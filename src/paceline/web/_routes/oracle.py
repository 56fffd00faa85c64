"""Questions to the oracle: a network on a cluster, under every strategy."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from paceline.errors import InfeasibleError
from paceline.web._answers import PlainResponse
from paceline.web._context import Context, Here
from paceline.web._places import find_cluster

router = APIRouter(prefix="/api/oracle", tags=["oracle"])

Name = Annotated[str, Field(max_length=500)]
Count = Annotated[int, Field(ge=1, le=16384)]


class Question(BaseModel):
    """A network, a cluster and numbers of devices: doublings from the first to the last."""

    workload: Name
    cluster: Name
    first: Count = 1
    last: Count = 64
    batch: Annotated[int, Field(ge=1, le=10_000_000)] = 256
    batch_of: Literal["global_batch", "device_batch"] = "global_batch"
    optimizer: Name = "adam"
    precision: Name = "float32"


@router.get("")
def choices(here: Here) -> PlainResponse:
    """List networks, clusters and optimizers to choose from."""
    from paceline.clusters import list_clusters, load_cluster
    from paceline.workloads import list_workloads, load_workload

    return PlainResponse(
        {
            "workloads": [
                {"name": n, "summary": load_workload(n).summary} for n in list_workloads()
            ],
            "clusters": [
                *({"name": n, "summary": str(load_cluster(n))} for n in list_clusters()),
                *({"name": n, "summary": "in this folder"} for n in here.folder.names("cluster")),
            ],
            "optimizers": ["sgd", "momentum", "adam", "adamw"],
        }
    )


@router.post("")
def ask(here: Here, question: Question) -> PlainResponse:
    """Say what a step costs under every strategy, what it needs and what limits it."""
    from paceline.oracle import knees
    from paceline.reports.views import view_survey

    found = _survey(here, question)
    note = ""
    try:
        found.require_fit()
    except InfeasibleError as error:
        note = str(error)
    return PlainResponse(
        {
            **view_survey(found).to_dict(),
            "note": note,
            "limits": found.limits,
            "knees": {} if note else knees(found),
            "n_scenarios": found.n_scenarios,
        }
    )


def _survey(here: Context, question: Question) -> Any:
    from paceline.oracle import survey
    from paceline.workloads import load_workload

    graph = load_workload(question.workload).graph({})
    cluster = find_cluster(here.folder, question.cluster)
    return survey(
        graph,
        cluster,
        _devices(question.first, question.last),
        global_batch=question.batch if question.batch_of == "global_batch" else None,
        device_batch=question.batch if question.batch_of == "device_batch" else None,
        optimizer=question.optimizer,
        precision=question.precision,
    )


def _devices(first: int, last: int) -> list[int]:
    found, n = [], first
    while n <= max(first, last):
        found.append(n)
        n *= 2
    return found
