# On a fresh machine `make demo` and `make test` do all the set-up.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= 2
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

.PHONY: setup demo test test-slow check bench docs same clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	touch $@

demo: setup  ## train a beta-TCVAE on rendered dSprites for a few minutes, measure it, write its report
	rm -rf runs/demo
	$(BIN)/elbo train beta-tcvae --data dsprites --steps 3000 --lr 1e-3 --beta 2 --seed 1 --out runs/demo
	$(BIN)/elbo eval runs/demo
	$(BIN)/elbo report runs/demo

test: setup  ## everything but what is slow: 6 minutes on two cores
	$(PYTEST) -m "not slow"

test-slow: setup  ## kills, processes, browsers, engines of studies, long statistics, every method where one of its kind will do
	$(PYTEST) -m slow

check: setup  ## lint, format, types and the fast tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -m fast

bench: setup  ## ratios against a named reference, on a machine that does nothing else; into the README too
	$(BIN)/python -m benchmarks.run

docs: setup  ## the page of every method and the catalogue of the commands, from the registry
	$(BIN)/python docs/pages.py

same: setup  ## does the work tree train, measure and draw what BASE does, bit for bit? make same BASE=commit
	$(BIN)/python tools/same.py $(BASE) --words
	$(BIN)/python tools/same.py $(BASE) --runs

clean:
	rm -rf $(VENV) .bench-venv build *.egg-info
