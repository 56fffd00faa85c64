"""``paceline list``."""

from __future__ import annotations

from collections.abc import Callable

import click

from paceline.cli._options import format_option
from paceline.cli._output import print_json


def _forms() -> dict[str, str]:
    from paceline.estimators import FORMS

    return dict(FORMS)


def _spaces() -> dict[str, str]:
    from paceline.space import list_spaces, load_space

    return {name: str(load_space(name)) for name in list_spaces()}


def _workloads() -> dict[str, str]:
    from paceline.workloads import list_workloads, load_workload

    return {name: load_workload(name).summary for name in list_workloads()}


def _clusters() -> dict[str, str]:
    from paceline.clusters import list_clusters, load_cluster

    return {name: str(load_cluster(name)) for name in list_clusters()}


def _executors() -> dict[str, str]:
    from paceline.executors import list_executors

    return {executor.name: executor.readiness() or "ready" for executor in list_executors()}


def _studies() -> dict[str, str]:
    from paceline.measurement import list_studies, load_study

    return {name: load_study(name).source for name in list_studies()}


def _strategies() -> dict[str, str]:
    from paceline.oracle import list_strategies

    return list_strategies()


_LISTS: dict[str, Callable[[], dict[str, str]]] = {
    "forms": _forms,
    "spaces": _spaces,
    "workloads": _workloads,
    "clusters": _clusters,
    "executors": _executors,
    "studies": _studies,
    "strategies": _strategies,
}


@click.command(
    name="list", epilog="\b\nExamples:\n  paceline list forms\n  paceline list executors"
)
@click.argument("what", type=click.Choice(list(_LISTS)))
@format_option
def command(what: str, output_format: str) -> None:
    """List what there is to choose from, and what is ready."""
    from paceline.reports import definitions

    known = _LISTS[what]()
    if output_format == "json":
        print_json(known)
    else:
        click.echo(definitions(known))
