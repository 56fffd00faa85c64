"""Predict 64 devices from 8.

You will learn to fit runs on few devices, to predict many with an interval, to find the knee
beyond which devices are wasted, to put a price on it, and to let the oracle help when runs are
few.
"""

# Nobody lends us 64 devices for a tutorial. So the measurements are made up, in a way that can
# be checked: the oracle's step times of small GPTs on a cluster whose network is half as fast
# as its data sheet says and whose devices reach less, with 4 % noise. The fits below never see
# that cluster.

from dataclasses import replace

import numpy as np
import pandas as pd

from paceline import Dataset, fit
from paceline.clusters import load_cluster
from paceline.estimators import Run, predict_run
from paceline.oracle import oracle_features
from paceline.reports.views import view_scaling

sheet = load_cluster("p3")
slower = [replace(x, link=replace(x.link, bandwidth=x.link.bandwidth / 2)) for x in sheet.levels]
shares = {kind: 0.6 * share for kind, share in sheet.device.efficiency.items()}
device = replace(sheet.device, efficiency=shares)
reality = replace(sheet, levels=tuple(slower), device=device)
random = np.random.default_rng(0)


def measure(n_rows: int, n_devices: list[int]) -> Dataset:
    """Return step times of GPTs of several widths under data parallelism."""
    names = {"width": [512, 1024, 1536], "layers": [6, 12], "device_batch": [1, 2, 4, 8]}
    names["n_devices"] = n_devices
    rows = pd.DataFrame({name: random.choice(values, n_rows) for name, values in names.items()})
    found = oracle_features(rows, cluster=reality)["oracle_step_s"]
    rows["time_s"] = found.to_numpy() * random.lognormal(0, 0.04, n_rows)
    return Dataset.from_frame(rows, time_per="step", batch="device_batch")


few, many = measure(60, [1, 2, 4, 8]), measure(60, [32, 64])

# ## Fit on up to 8, ask for 64
#
# The interval is calibrated on configurations that were held out. Beyond the measured range it
# grows with the distance: nobody knows what happens where nobody was.

plain = fit(few, form="posynomial", random_state=0)
row = pd.DataFrame({"width": [1536], "layers": 12, "device_batch": 1, "n_devices": 64})
print(plain.predict(row).round(4).to_string(index=False))

# How good was that? Here, and only here, we can look.


def judge(name: str, predicted: pd.DataFrame) -> None:
    """Print the error on 32 and 64 devices, and how many times lie within the interval."""
    error = np.mean(np.abs(predicted["predicted_s"] / many.y - 1))
    inside = np.mean((predicted["lower_s"] <= many.y) & (many.y <= predicted["upper_s"]))
    print(f"{name}: off by {error:.1%} on many devices, {inside:.0%} within the interval")


judge("measurements alone", plain.predict(many.X))

# Not good, and worse than the interval says. A node has eight devices: all our runs stayed
# inside one, and no measurement there knows what the network outside will cost. Measure on two
# nodes, if you can, before you believe 64 devices. If you cannot, somebody else must know.
#
# ## With the oracle
#
# The oracle knows how an exchange grows with devices, though not how fast yours is; the runs
# know that. `features="oracle"` gives both to the fit. It is told the data sheet, not the
# truth.

helped = fit(few, form="posynomial", features="oracle", cluster="p3", random_state=0)
judge("with the oracle", helped.predict(many.X))

# ## The knee
#
# The number of devices beyond which twice as many add less than 10 % to the rate. With one
# sample a device, the exchange is all there is to hide: outside the node, it cannot.

curve, *_ = view_scaling(few, helped, at={"width": 1536, "device_batch": 1})
for n, time_s, speedup in zip(curve.values, curve.predicted_s, curve.speedup, strict=True):
    print(f"{n:4.0f} devices  {1e3 * time_s:6.1f} ms  speedup {speedup:5.1f}")
knee = curve.knee
print("knee:", f"{knee.n_devices} devices" if knee.is_reached else f"beyond {knee.n_devices}")

# ## The price
#
# A run of 3 epochs of a million samples, at 3 a device and hour. In the shell: `paceline
# predict model.json --at n_devices=64 --samples 1000000 --epochs 3 --price 3`.

cost = predict_run(helped, row, Run(n_samples=1_000_000, n_epochs=3, price=3.0)).iloc[0]
print(f"{cost.run_s / 3600:.1f} h, {cost.device_hours:.0f} device-hours, {cost.efficiency:.0%}")
print(f"money: {cost.money:.0f} ({cost.money_lower:.0f} to {cost.money_upper:.0f})")
