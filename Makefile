# Every target works on a fresh machine with Python 3.11+, pip and make.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
# warnings are errors; the variable silences an advertisement
SITE := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.PHONY: demo test test-plans test-web test-new-user test-executors check docs bench validate format clean

demo: .venv/.torch
	$(BIN)/paceline demo -o demo

test: .venv/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not serial and not plans and not web and not new_user"
	$(BIN)/python -m pytest -m "serial and not plans" --ignore tests/executors/test_frameworks.py

# every strategy with every network, on 2 to 4 processes; faults; late gradients on real digits
test-plans: .venv/.dev
	$(BIN)/python -m pytest -m plans

# report and web application in a real browser (chromium), and requests of any shape
test-web: .venv/.dev
	$(BIN)/python -m pytest -m web

# README and first tutorial word by word, in a fresh copy and a fresh environment: minutes
test-new-user: .venv/.dev
	$(BIN)/python -m pytest -m new_user

# the four frameworks that live in environments of their own; installs what is missing
test-executors: .venv/.dev
	for name in tensorflow jax mxnet chainer; do \
	  $(BIN)/paceline executors install $$name || exit 1; done
	$(BIN)/python -m pytest tests/executors/test_frameworks.py

check: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(SITE) --site-dir build/site

# the documents as a site: site/index.html
docs: .venv/.dev
	$(SITE)

bench: .venv/.torch
	$(BIN)/python benchmarks/run.py

validate: .venv/.core
	$(BIN)/paceline validate

format: .venv/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv demo build dist site

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.core: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) --editable .
	@touch $@

.venv/.torch: .venv/.core
	$(PIP) --editable '.[torch]'
	@touch $@

.venv/.dev: .venv/.torch
	$(PIP) --editable '.[dev]'
	@touch $@
