"""Choose a strategy before you rent.

You will learn to ask what a step costs under every parallel strategy, what limits it, where more
devices stop paying, and to let the planner choose. Nothing is run: a network and a data sheet
do.
"""

# A network is a name, a file of layers, or a module of your own; a cluster is a name of the
# catalogue or a file. `paceline list workloads` and `paceline list clusters` show them. Ours
# are GPT-2 large and nodes of eight V100 with 16 GB each, joined by a network that is 40 times
# slower than the links inside.

from paceline.clusters import load_cluster
from paceline.oracle import knees, survey, sweep
from paceline.planners import search_plans
from paceline.scenario import Strategy
from paceline.workloads import load_workload

network, cluster = load_workload("gpt2-large").graph(), load_cluster("p3")
print(network, cluster, sep="\n")

# ## What fits?
#
# 64 samples a step on eight devices. Plain data parallelism needs more memory than a device
# has. What does not fit, or cannot be dealt out, says why.

for strategy in (
    Strategy(data=8),
    Strategy(data=8, micro_batches=8),
    Strategy(data=8, shard=3),
    Strategy(tensor=8),
    Strategy(data=2, pipeline=4, micro_batches=8),
):
    one = sweep(network, cluster, [strategy], global_batch=64, precision="float16")
    gib = one.memory_bytes[0] / 2**30
    fits = f"{one.step_s[0]:.2f} s, {gib:.1f} GiB" if one.frame["fits"][0] else one.why(0)
    print(f"{strategy!s:44} {fits}")

# ## More devices
#
# For every strategy and number of devices `survey` tries all ways to deal them out and keeps
# the best. The step stays one of 64 samples. In the shell: `paceline oracle gpt2-large
# --cluster p3 --devices 8..64 --global-batch 64 --precision float16 --knee`.

found = survey(network, cluster, [8, 16, 32, 64], global_batch=64, precision="float16")
table = found.frame(n_samples=1_000_000)
best = table.loc[table["best"], ["n_devices", "strategy", "step_s", "epoch_s", "bottleneck"]]
print(best.round(3).to_string(index=False))

# The knee is the number of devices beyond which twice as many add less than 10 % to the rate.

knee = knees(found)["best"]
print("knee:", f"{knee.n_devices} devices" if knee.is_reached else f"beyond {knee.n_devices}")

# ## A plan
#
# The planner looks closer: where a pipeline is cut, which schedule it keeps, what is computed
# again, who sits where. It says why, and how far behind the others are, which is worth as much.

plans = search_plans(network, cluster, 32, 64, precision="float16")
plan = plans.plan
print(f"{plan.strategy}: {plan.predicted['step_s']:.2f} s", *plan.reasons, sep="\n- ")
for other in plan.runners_up[:4]:
    print(f"  {other['strategy']}: {other['behind']:+.1%}")

# Fastest is one wish. The front has every plan that nothing beats in time, devices and memory
# at once; here is the fastest of each number of devices, and what its hurry costs.

fastest = {}
for member in plans.front:
    fastest.setdefault(member["n_devices"], member)
for n, member in sorted(fastest.items()):
    spent = n * member["step_s"]
    print(f"{n:2} devices: {member['step_s']:.2f} s, {spent:.1f} device-seconds a step")

# In the shell: `paceline plan gpt2-large --cluster p3 --devices 32 --global-batch 64
# --precision float16 --objective cheapest -o plan.json`. All this is the oracle's word. Before
# you believe it of a machine that you can reach, run a small plan there: `run_a_plan.py`.
