"""Small networks, and jobs that divide them: what the tests of every strategy share."""

from paceline.executors import Job, load_executor
from paceline.workloads import load_workload

NETWORKS = {
    "lenet5": {"dropout": 0.0, "activation": "tanh"},
    "resnet18": {"image_size": 32, "n_classes": 10, "filters": 8},
    "resattnet18": {"volume": 32, "filters": 8},
    "gpt": {"layers": 2, "width": 32, "heads": 4, "length": 16, "vocabulary": 64},
}
TRANSFORMERS = {
    **NETWORKS,
    "gpt2": NETWORKS["gpt"],
    "llama-1b": {**NETWORKS["gpt"], "key_heads": 2, "inner": 64},
}


def divided_job(
    name, strategy, *, global_batch=8, n_steps=20, stages=None, optimizer="sgd", **more
):
    """Return a job in float64 that divides a small network."""
    keywords = load_workload(name).job_keywords(
        {**TRANSFORMERS[name], "optimizer": optimizer, "learning_rate": 0.01}
    )
    keywords["network"] = [without_batch_norm(op) for op in keywords["network"]]
    full = {"data": 1, "pipeline": 1, "micro_batches": 1, "schedule": "1f1b", **strategy}
    degrees = ("data", "pipeline", "spatial", "filter", "channel", "tensor", "context", "expert")
    n_workers = 1
    for degree in degrees:
        n_workers *= full.get(degree, 1)
    inner = n_workers // full["data"]
    batches = more.pop("replica_batches", None) or [global_batch // full["data"]] * full["data"]
    placement = more.pop("placement", None) or [
        list(range(q * inner, (q + 1) * inner)) for q in range(full["data"])
    ]
    division = {
        "strategy": full,
        "placement": placement,
        "stages": stages or [[0, len(keywords["network"])]],
        "replica_batches": batches,
        "split_layers": more.pop("split_layers", []),
        "grid": more.pop("grid", []),
        "tensor_roles": more.pop("tensor_roles", {}),
        "n_leading": more.pop("n_leading", 0),
    }
    return Job(
        **keywords,
        device_batches=[global_batch] * n_workers,
        division=division,
        precision="float64",
        n_warmup=0,
        n_steps=n_steps,
        **more,
    )


def maps_of(operations, *, leave_first=False):
    """Return the names of all convolutions and linear maps, inner ones too."""
    names = []
    for operation in operations:
        if operation["op"] in ("conv", "linear"):
            names.append(operation["name"])
        for key in ("body", "shortcut"):
            names += maps_of(operation.get(key) or ())
    return names[1:] if leave_first else names


def tensor_roles(operations):
    """Return what each layer of a Transformer is to tensor parallelism, by its name."""
    roles = {}
    for operation in operations:
        name = operation["name"]
        kind = {
            "embedding": "vocabulary_in",
            "causal_attention": "heads",
            "rotary_attention": "heads",
        }.get(operation["op"], "")
        if operation["op"] == "linear":
            kind = "vocabulary_out" if name == "output" else "column"
            if name.endswith(("dense2", "down")):
                kind = "row"
        if kind:
            roles[name] = kind
        for key in ("body", "shortcut"):
            roles |= tensor_roles(operation.get(key) or ())
    return roles


def without_batch_norm(operation):
    """Return an operation with group norm in place of batch norm, which sees other samples."""
    changed = dict(operation)
    if changed["op"] == "batch_norm":
        changed["op"] = "group_norm"
    for key in ("body", "shortcut"):
        if key in changed:
            changed[key] = [without_batch_norm(inner) for inner in changed[key]]
    return changed


class Pools:
    """Workers that stay alive between jobs, forked from one process that has imported PyTorch."""

    def __init__(self):
        self.executor = load_executor("torch").warm()
        self.pools = {}

    def run(self, job, timeout_s=120):
        """Run a job on as many workers as it needs."""
        if job.n_workers not in self.pools:
            self.pools[job.n_workers] = self.executor.open(job.n_workers)
        return self.pools[job.n_workers].run(job, timeout_s)

    def close(self):
        """End all workers."""
        for pool in self.pools.values():
            pool.close()
        self.executor.close()
