"""Run a plan: predicted beside measured.

You will learn to describe the machine that you sit at, to plan for it, to run the plan on real
processes, and to keep what was measured. It needs PyTorch, starts two workers and takes half a
minute.
"""

# ## Describe this machine
#
# In the shell, `paceline calibrate -o here.toml` measures rates, layers and exchanges in about
# a minute. To be quicker we run two small networks only, once each. The closer they are to what
# you will train, the better; and nothing else should run meanwhile: the last line says if
# something did.

import shlex

from paceline.cli import main
from paceline.clusters import save_cluster
from paceline.measurement import NetworkProbe, calibrate

probes = [NetworkProbe(workload="lenet5", values={}, batch=batch) for batch in (16, 64)]
here = calibrate(workers=(1, 2), n_lives=1, probes=probes)
save_cluster(here.cluster, "here.toml")
print(here)

# The commands from here on are those that you would type. This helper shows them and runs them.


def paceline(line: str) -> None:
    """Run `paceline LINE`, as the shell does."""
    print(f"\n$ paceline {line}", flush=True)
    try:
        main(shlex.split(line))
    except SystemExit as ended:
        if ended.code:
            raise


# ## Plan
#
# Two workers, 64 samples a step. All strategies are looked at, and the plan says why it is what
# it is. Without `--use-all` the planner may well say that one worker alone is faster: two
# exchange gradients, and LeNet-5 is small.

paceline("plan lenet5 --cluster here.toml --devices 2 --global-batch 64 --use-all -o plan.json")

# ## Run
#
# The plan is run as it stands: real processes, real exchanges, generated samples of the right
# shape. Bytes and memory should be as predicted, or nearly. Times are as good as the
# description of the machine; on one that others use as well, the exchange is what suffers most.

paceline("run plan.json --steps 10 -o planned.db")

# ## Go on
#
# A plan that you do not believe in can be run just so: `--strategy pipeline` plans two stages,
# and the same command runs them. Every run adds a row to `planned.db`, its strategy as
# parameters; of some dozens `paceline fit planned.db` makes a model of this machine that
# `paceline plan --predictor model.json` plans with. On several hosts the same plan runs with
# `--rendezvous`: see [Running a plan](../running.md).
