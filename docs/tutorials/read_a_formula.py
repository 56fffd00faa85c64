"""Read a formula.

You will learn what the terms of a fitted expression say, where the regime changes, which other
expressions were tried, and how to take a formula elsewhere.
"""

# We fit a posynomial: a sum of terms, each a product of powers. A label in brackets is a factor
# that depends on a level, such as that of the optimizer.

import numpy as np

import paceline

data = paceline.load_dataset("examples/lenet5.csv", time_per="step")
fit = paceline.fit(data, form="posynomial", random_state=0)
reading = paceline.explain(fit)
print(reading.formula)

# ## Terms
#
# Every term has a name, guessed from what it scales with: something paid for every sample,
# something paid once a step, something that only several devices pay. The share says what is
# worth improving.

for term in reading.terms:
    print(f"\n{term.name} ({term.label}): {term.mean_share:.0%} of the time on average")
    print(f"  {term.words}")

# ## What doubling does
#
# At a typical point, the largest effects first. A power of 1 means in proportion, 0 means that
# the time does not care. This is what a derivative says, for people.

for doubling in reading.doublings[:4]:
    print(f"twice the {doubling.name}: {doubling.factor:.2f} times as long")

# Is that good scaling? That depends on what the time is of. Ours is of a step at a fixed batch
# of every device, so an ideal step would take as long on two devices as on one.

for devices in reading.devices:
    print(f"{devices.name}^{devices.power:.2f}, ideal {devices.ideal}: {devices.verdict}")

# ## Where the regime changes
#
# Below a certain batch the overhead is most of a step, above it the work. More devices help
# only on one side of that line. The map has the largest term over two parameters of your
# choice.

for change in reading.regimes:
    print(f"{change.name} = {change.value:.3g}: from {change.below} to {change.above}")
chart = paceline.explain(fit, over=("device_batch", "filters")).dominance
print(f"largest term; {chart.x_name} across: {np.round(chart.x).astype(int)}")
for filters, terms in zip(chart.y, chart.terms, strict=True):
    print(f"{chart.y_name} {filters:3.0f}  ", *terms)

# ## The front
#
# More terms are not always better: the error here is on rows not seen. The simplest formula
# within one standard error of the best was taken; `fit(..., n_terms=3)` takes another.

for member in fit.estimator.front_.members:
    print(f"{member.n_terms} terms, {member.n_constants} constants: {member.error:.1%}")

# ## Take it with you
#
# To a paper as LaTeX; to another program as a Python function that imports nothing but `math`;
# to SymPy; or as a fast function of arrays.

expression = fit.estimator.expression_
print(expression.to_latex(digits=3))
print(expression.to_python())
print(expression.to_numpy()(data.X)[:3], "beside measured", data.y[:3])

# Names of terms are guesses from names of columns and powers. They say how a term scales, not
# what the hardware does.
