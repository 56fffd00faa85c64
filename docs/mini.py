"""The whole idea of Paceline, in NumPy and SciPy alone.

`python docs/mini.py` runs it. Short runs on few devices are fitted by a formula that a person
can read. It predicts many devices, with an interval that was earned on runs it had not seen. A
second model, of data sheets alone, says which strategy fits and is fastest before anything has
run.

Paceline itself measures real machines, knows labels (optimizer, padding, ...), more strategies,
overlap and pipelines pass by pass, and runs what it plans.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.optimize import minimize, nnls

# 1. The oracle: what a step takes, from first principles.


@dataclass(frozen=True)
class Machine:
    """Equal devices on equal links, as a data sheet describes them."""

    flop_per_s: float = 100e12
    bytes_per_s: float = 25e9
    latency_s: float = 10e-6  # of every message, however short
    memory_bytes: float = 40e9
    overhead_s: float = 0.0  # paid once a step


@dataclass(frozen=True)
class Network:
    """A Transformer: equal blocks, one behind the other."""

    width: int
    n_layers: int = 24
    length: int = 1024  # tokens of a sample

    @property
    def n_weights(self):
        """Attention has 4 w^2, the two linear maps behind it 8 w^2."""
        return 12.0 * self.n_layers * self.width**2


def all_reduce_s(n_bytes, n, machine):
    """Return the time of a ring: 2 (n - 1) messages of 1/n each, and none on one device."""
    return 2 * (n - 1) * (machine.latency_s + n_bytes / n / machine.bytes_per_s)


def step_s(net, machine, global_batch, data=1, tensor=1, pipeline=1, micro_batches=8):
    """Return the time of a step with samples, matrices and layers dealt out over devices."""
    n_tokens = global_batch * net.length / data  # of one replica
    n_weights = net.n_weights / tensor / pipeline  # of one device
    compute = 6 * n_weights * n_tokens / machine.flop_per_s  # 2 forward, 4 backward
    bubble = compute * (pipeline - 1) / micro_batches  # stages wait for the first and the last
    gradients = all_reduce_s(4 * n_weights, data, machine)
    one_exchange = all_reduce_s(2 * n_tokens * net.width, tensor, machine)
    activations = 4 * net.n_layers / pipeline * one_exchange  # two a layer and pass
    return machine.overhead_s + compute + bubble + gradients + activations


def memory_bytes(net, global_batch, data=1, tensor=1, pipeline=1):
    """Return weights, gradients and Adam's averages, and what the backward pass will need."""
    # 34 bytes a token, width and layer, without the attention's scores: arXiv 2205.05198, eq. 1
    kept = 34 * net.width * net.length * net.n_layers * global_batch / data
    return (16 * net.n_weights + kept) / tensor / pipeline


def choose_strategy(net, machine, global_batch, n_devices):
    """Return time and degrees of every strategy that fits, the fastest first."""
    found = []
    for degrees in product([2**k for k in range(n_devices.bit_length())], repeat=3):
        named = dict(zip(("data", "tensor", "pipeline"), degrees, strict=True))
        is_whole = np.prod(degrees) == n_devices and named["data"] <= global_batch
        if is_whole and memory_bytes(net, global_batch, **named) <= machine.memory_bytes:
            found.append((step_s(net, machine, global_batch, **named), named))
    return sorted(found, key=lambda pair: pair[0])


# 2. Measurements: of a machine that is not what its data sheet says.

SHEET = Machine()
REALITY = replace(SHEET, flop_per_s=43e12, bytes_per_s=9e9, overhead_s=0.05)
NAMES = ("width", "device_batch", "n_devices")


def measure(n_runs, rng, noise=0.03):
    """Return random trials on up to eight devices, one row each, and their step times."""
    values = ([512, 1024, 2048, 4096], [1, 2, 4, 8], [1, 2, 4, 8])
    X = np.array([[rng.choice(v) for v in values] for _ in range(n_runs)], dtype=float)
    times = [step_s(Network(width=w), REALITY, b * n, data=n) for w, b, n in X]
    return X, np.array(times) * rng.lognormal(0, noise, n_runs)


# 3. The expression: t = sum_k c_k prod_i x_i^p_ki, some terms times 1 - 1/n.


@dataclass(frozen=True)
class Posynomial:
    """A sum of products of powers; an exchange is a term that vanishes on one device."""

    log_c: np.ndarray
    powers: np.ndarray  # by term and parameter
    exchanges: tuple[bool, ...]  # by term

    def log_terms(self, X):
        """Return the logarithm of every term: a plane in the logarithms of the parameters."""
        others = np.log(np.maximum(1 - 1 / X[:, -1:], 1e-12))
        return self.log_c + np.log(X) @ self.powers.T + others * self.exchanges

    def predict(self, X):
        """Return seconds."""
        return np.exp(np.logaddexp.reduce(self.log_terms(X), axis=1))

    def __str__(self):
        lines = []
        for log_c, powers, is_exchange in zip(
            self.log_c, self.powers, self.exchanges, strict=True
        ):
            raised = ((x, p) for x, p in zip(NAMES, powers, strict=True) if p)
            factors = [x if p == 1 else f"{x}^{p:.2g}" for x, p in raised]
            lines.append(
                " ".join([f"{np.exp(log_c):.3g} s", *factors, *["(1 - 1/n)"] * is_exchange])
            )
        return "t = " + "\n  + ".join(lines)


def fit_logs(X, y, exchanges, rng, n_starts=3, ridge=1e-4):
    """Fit logarithms, so that relative errors count and every coefficient is positive.

    The sum becomes a log-sum-exp of planes: smooth, its slope the shares of the terms. It has
    several valleys, hence the starts; the ridge keeps powers small unless the data ask for more.
    """
    n_terms, centre = len(exchanges), np.log(X).mean(axis=0)

    def unpack(v):
        powers = v[n_terms:].reshape(n_terms, -1)
        return Posynomial(v[:n_terms] - powers @ centre, powers, exchanges)

    def loss(v):
        logs = unpack(v).log_terms(X)
        total = np.logaddexp.reduce(logs, axis=1, keepdims=True)
        error = total - np.log(y)[:, None]
        pull = 2 / len(y) * error * np.exp(logs - total)
        slope = np.r_[pull.sum(axis=0), (pull.T @ (np.log(X) - centre)).ravel()]
        slope[n_terms:] += 2 * ridge * v[n_terms:]
        return np.mean(error**2) + ridge * np.sum(v[n_terms:] ** 2), slope

    middle = np.r_[np.full(n_terms, np.log(y).mean()), np.zeros(n_terms * X.shape[1])]
    starts = middle + rng.normal(size=(n_starts, len(middle)))
    runs = [minimize(loss, start, jac=True, method="L-BFGS-B") for start in starts]
    return unpack(min(runs, key=lambda run: run.fun).x)


def fit(X, y, exchanges, rng):
    """Return a formula: with whole powers, if Schwarz's criterion likes them no less."""
    free = fit_logs(X, y, exchanges, rng)
    whole = replace(free, log_c=np.zeros(len(exchanges)), powers=np.round(free.powers))
    c, _ = nnls(np.exp(whole.log_terms(X)) / y[:, None], np.ones(len(y)))  # least relative errors
    whole = replace(whole, log_c=np.log(np.maximum(c, 1e-300)))
    error = [np.mean(np.log(model.predict(X) / y) ** 2) for model in (whole, free)]
    return whole if error[0] < error[1] * len(y) ** (free.powers.size / len(y)) else free


def held_out(X, y, exchanges, rng, n_folds=5):
    """Return predicted / measured of every row, by a formula that had not seen its trial."""
    _, trial = np.unique(X, axis=0, return_inverse=True)  # repeats of a trial stay together
    fold = rng.permutation(trial.max() + 1)[trial.ravel()] % n_folds
    models = [fit(X[fold != k], y[fold != k], exchanges, rng) for k in range(n_folds)]
    return np.array([models[k].predict(x[None])[0] for k, x in zip(fold, X, strict=True)]) / y


def interval(model, ratios, X, x, coverage=0.9):
    """Return time, lower and upper limit at `x`: conformal, and wider where nobody measured.

    Of m errors on rows not seen the k-th least, k = ceil((m + 1) coverage), covers one more with
    that probability. Four times as wide where `x` lies one measured span beyond the range.
    """
    k = int(np.ceil((len(ratios) + 1) * coverage))
    low, high, here = np.log(X.min(axis=0)), np.log(X.max(axis=0)), np.log(x)
    beyond = np.max(np.maximum(low - here, here - high).clip(0) / (high - low))
    half = np.sort(np.abs(np.log(ratios)))[k - 1] * (1 + 3 * beyond)
    return model.predict(x[None])[0] * np.exp([0, -half, half])


# 4. All together.

POWER_LAW, *LARGER = (False,), (False, True), (False, False, True)


def main(random_state=0):
    """Print a formula, its error beside a power law, a prediction, and a choice."""
    rng = np.random.default_rng(random_state)
    X, y = measure(80, rng)
    ratios = {form: held_out(X, y, form, rng) for form in (POWER_LAW, *LARGER)}
    error = {form: np.mean(np.abs(r - 1)) for form, r in ratios.items()}
    best = min(error, key=error.get)
    model = fit(X, y, best, rng)
    print(f"80 runs on 1 to 8 devices, with 3 % noise, say\n\n{model}\n")
    print(f"off by {error[best]:.1%} on trials not seen; a power law by {error[POWER_LAW]:.1%}")

    net, x = Network(width=2048), np.array([2048.0, 4.0, 64.0])
    time, lower, upper = interval(model, ratios[best], X, x)
    truth, promise = (step_s(net, m, 256, data=64) for m in (REALITY, SHEET))
    print(f"64 devices: {time:.2f} s, 90 % interval {lower:.2f} to {upper:.2f} s")
    print(f"  (they take {truth:.2f} s; the data sheet promises {promise:.2f} s)\n")

    print("A network 8192 wide on 64 devices, 256 samples a step, by the data sheet:")
    for seconds, degrees in choose_strategy(Network(width=8192), SHEET, 256, 64)[:3]:
        print(f"  {seconds:.1f} s  ", *(f"{name} {n}" for name, n in degrees.items()))


if __name__ == "__main__":
    main()
