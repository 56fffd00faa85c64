"""ParaDL's printed predictions from its own formulas, layer tables and constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.oracle import ParadlCosts, ParadlRun, paradl_epoch, paradl_layers
from paceline.validation._checks import Check, check_number
from paceline.validation._oracle_facts import load_oracle_facts

DEVICES_PER_NODE = 4


def check_paradl_forms() -> list[Check]:
    """Check every prediction that the formulas give, to the printed digit."""
    facts = load_oracle_facts("paradl")
    return [
        check_number(
            f"{part.removesuffix('_s')} of an epoch in s, {entry['strategy']} {entry['network']}, "
            f"{row['n_devices']} devices",
            "ParaDL table VIII",
            expected=row[part],
            got=getattr(paradl_costs(facts, entry, row["n_devices"]), part),
            tolerance=1.0,  # some are rounded, some cut off
            kind="arithmetic",
        )
        for entry in facts["printed"]
        for row in entry["rows"]
        for part in ("compute_s", "communication_s")
        if part in row
    ]


def paradl_costs(
    facts: Mapping[str, Any], entry: Mapping[str, Any], n_devices: int
) -> ParadlCosts:
    """Return what ParaDL's formulas give for one of its cases."""
    link, node = link_between(facts, n_devices), facts["links"]["node"]
    hybrid = entry["strategy"] == "data+filter"
    n_nodes = n_devices // DEVICES_PER_NODE
    run = ParadlRun(
        n_samples=facts["links"]["samples"],
        # the batch of filter parallelism does not grow with devices, that of a hybrid with nodes
        global_batch=entry["device_batch"] * (n_nodes if hybrid else 1),
        n_devices=n_devices,
        inner=DEVICES_PER_NODE if hybrid else 1,
        latency_s=link["latency_s"],
        s_per_byte=1 / link["bandwidth"],
        inner_latency_s=node["latency_s"],
        inner_s_per_byte=1 / node["bandwidth"],
        contention=entry.get("contention", 1),
    )
    return paradl_epoch(entry["strategy"], paradl_layers(entry["network"]), run)


def link_between(facts: Mapping[str, Any], n_devices: int) -> Mapping[str, float]:
    """Return latency and bandwidth of the farthest pair among `n_devices` of ABCI."""
    limits = {"node": 4, "near": 68, "far": 136}
    name = next((name for name, most in limits.items() if n_devices <= most), "farthest")
    return facts["links"][name]  # type: ignore[no-any-return]
