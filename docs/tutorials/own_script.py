"""Measure a training script without touching it.

You will learn to time the steps of any PyTorch script from outside, to collect several runs in
one file, and to fit a formula to them. It needs PyTorch and takes some twenty seconds.
"""

# Here stands for your own script one that knows nothing of Paceline. It prints nothing, and it
# stays as it is.

import shlex
import sys
from pathlib import Path

from paceline.cli import main

SCRIPT = """
import sys
import torch

batch = int(sys.argv[1])
torch.set_num_threads(1)
net = torch.nn.Sequential(
    torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(1000):
    samples, labels = torch.randn(batch, 784), torch.randint(10, (batch,))
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(samples), labels).backward()
    optimizer.step()
"""
Path("train.py").write_text(SCRIPT)


def paceline(line: str) -> None:
    """Run `paceline LINE`, as the shell does."""
    print(f"\n$ paceline {line}", flush=True)
    try:
        main(shlex.split(line.replace("python", sys.executable, 1)))
    except SystemExit as ended:
        if ended.code:
            raise


# ## One run
#
# Write `paceline trace --` before the command that you would type anyway. Python loads a small
# file at start-up, which asks PyTorch to be told of every optimizer step. The first steps are
# dropped, and `--steps 40` ends the script soon after 40 more, though it would have made a
# thousand. A script does not say what it was started with, so we do, with `--at`: the row goes
# to `runs.db`.

paceline("trace --steps 40 -o runs.db --at global_batch=8 -- python train.py 8")

# ## Several runs
#
# Each adds a row. The same works for `torchrun`: of several workers the slowest counts.

for batch in (32, 128, 512):
    paceline(f"trace --steps 40 -o runs.db --at global_batch={batch} -- python train.py {batch}")

# ## A formula of them
#
# Four rows are a sketch: Paceline says that nothing could be held out, so that the error is
# unknown and no interval is given.

paceline("fit runs.db -o own.json")
paceline("predict own.json --at global_batch=256")

# For a real answer, let `paceline measure` run the script over a space of parameters, each
# trial in two processes and some of them repeated: a study with `executor = "command"`,
# described in [Measuring your own script](../own-script.md). It also reads times that your
# script prints or writes, in any framework.
