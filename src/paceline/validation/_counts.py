"""Published numbers of parameters, and Paleo's formulas."""

from __future__ import annotations

from paceline.clusters import load_cluster
from paceline.oracle import paleo_exchange_time, paleo_layer_times
from paceline.validation._checks import Check, check_number
from paceline.validation._oracle_facts import load_oracle_facts
from paceline.workloads import load_workload


def check_parameters() -> list[Check]:
    """Check the numbers of parameters of shipped networks against the published ones."""
    facts = load_oracle_facts("parameters")
    return [
        check_number(
            f"parameters of {name}",
            f"published counts, {group}",
            expected=count,
            got=load_workload(name).graph().total("n_parameters"),
            tolerance=0.0,
            kind="arithmetic",
        )
        for group in ("torchvision", "gpt2", "llama")
        for name, count in facts[group].items()
    ]


def check_paleo() -> list[Check]:
    """Check Paleo's formulas on AlexNet; it publishes no accuracy that could be replayed."""
    source = "Paleo (ICLR 2017), formulas"
    graph, bandwidth = load_workload("alexnet").graph(), 2.5e9  # 20 Gb/s Ethernet
    n_bytes = 4.0 * 61_100_840
    factors = {"one_to_all": 2 * 7, "tree": 2 * 3, "butterfly": 3, "mixing": 1}
    checks = [
        check_number(
            f"exchange of AlexNet's gradients by {scheme} on 8 workers in s",
            source,
            expected=factor * n_bytes / bandwidth,
            got=float(paleo_exchange_time(scheme, n_bytes, 8, bandwidth)),
            tolerance=1e-9,
            kind="arithmetic",
        )
        for scheme, factor in factors.items()
    ]
    device = load_cluster("paleo-k80").device
    forward = paleo_layer_times(graph, device, 128, share=0.62)[0]
    layer = graph.layers[0]
    moved = 128 * (layer.input_bytes + layer.output_bytes) + layer.weight_bytes
    compute_s = 128 * layer.forward_flop / (device.peak_flops["float32"] * 0.62)
    name = "forward pass of AlexNet's first layer, 128 samples on a K80, in s"
    expected = compute_s + moved / (device.memory_bandwidth * 0.62)
    return [
        *checks,
        check_number(
            name,
            source,
            expected=expected,
            got=float(forward[0]),
            tolerance=1e-12,
            kind="arithmetic",
        ),
    ]
