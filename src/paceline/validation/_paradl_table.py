"""Table VIII of ParaDL: its predictions and ours beside its measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.oracle import ParadlRun, paradl_epoch, paradl_layers
from paceline.validation._accuracy import Prediction, mean_accuracy, show_accuracy
from paceline.validation._checks import Check
from paceline.validation._oracle_facts import load_oracle_facts
from paceline.validation._paradl_forms import DEVICES_PER_NODE, link_between

SOURCE = "ParaDL table VIII"

# mean over the cases that test, by network and strategy: ours as recorded
RECORDED = {
    ("resnet50", "data+spatial"): 0.922,
    ("resnet50", "data+filter"): 0.870,
    ("resnet50", "filter"): 0.536,  # measured: twice the devices computed 2.8 times as long
    ("resnet50", "channel"): 0.992,
    ("vgg16", "data+spatial"): 0.965,
    ("vgg16", "data+filter"): 0.980,
    ("vgg16", "filter"): 0.915,
}


def check_paradl_table() -> list[Check]:
    """Show our accuracy in every column of table VIII, with ParaDL's own beside it."""
    facts = load_oracle_facts("paradl")
    checks = []
    for entry in facts["table_viii"]:
        ours, theirs = predict_entry(facts, entry), own_predictions(entry)
        checks.append(
            show_accuracy(
                f"mean accuracy, {entry['strategy']} {entry['network']}, {len(ours)} cases",
                SOURCE,
                recorded=RECORDED[entry["network"], entry["strategy"]],
                got=mean_accuracy(ours),
                beside=f"ParaDL's own {mean_accuracy(theirs):.1%}",
            )
        )
    return checks


def table_predictions() -> list[Prediction]:
    """Return our predictions of all cases of table VIII that test."""
    facts = load_oracle_facts("paradl")
    return [p for entry in facts["table_viii"] for p in predict_entry(facts, entry)]


def predict_entry(facts: Mapping[str, Any], entry: Mapping[str, Any]) -> list[Prediction]:
    """Return our predictions of one column.

    The smallest number of devices sets two numbers, the computation and the communication of a
    step; how both go on follows from the strategy: ParaDL's form gives their ratio.
    """
    first = entry["n_devices"][0]
    measured = dict(zip(entry["n_devices"], entry["measured"], strict=True))
    base = _parts(facts, entry, first)
    found = []
    for n in entry["n_devices"][1:]:
        parts = _parts(facts, entry, n)
        ratios = [now / then for now, then in zip(parts, base, strict=True)]
        found.append(
            Prediction(
                name=f"{entry['strategy']} {entry['network']}",
                n_devices=n,
                predicted=sum(r * m for r, m in zip(ratios, measured[first], strict=True)),
                measured=sum(measured[n]),
            )
        )
    return found


def own_predictions(entry: Mapping[str, Any]) -> list[Prediction]:
    """Return ParaDL's printed predictions of the same cases."""
    rows = zip(entry["n_devices"], entry["predicted"], entry["measured"], strict=True)
    return [
        Prediction(name="ParaDL", n_devices=n, predicted=total, measured=sum(parts))
        for n, total, parts in list(rows)[1:]
    ]


def _parts(facts: Mapping[str, Any], entry: Mapping[str, Any], n: int) -> tuple[float, float]:
    link, node = link_between(facts, n), facts["links"]["node"]
    hybrid = entry["strategy"].startswith("data+")
    batch = {"resnet50": 64, "vgg16": 32}[entry["network"]]
    run = ParadlRun(
        n_samples=facts["links"]["samples"],
        global_batch=batch * (n // DEVICES_PER_NODE if hybrid else 1),
        n_devices=n,
        inner=DEVICES_PER_NODE if hybrid else 1,
        latency_s=link["latency_s"],
        s_per_byte=1 / link["bandwidth"],
        inner_latency_s=node["latency_s"],
        inner_s_per_byte=1 / node["bandwidth"],
        halo_latency_s=3e-3,  # through the host
        halo_s_per_byte=2 * DEVICES_PER_NODE / 16e9,
        gather_s_per_byte=2 / 16e9,
        contention=2 * DEVICES_PER_NODE,
    )
    costs = paradl_epoch(entry["strategy"], paradl_layers(entry["network"]), run)
    return costs.compute_s, costs.communication_s
