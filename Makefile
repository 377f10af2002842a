# On a fresh machine `make demo` and `make test` do all the set-up.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= 2
ARGS   ?=
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
	@echo "look into it: $(BIN)/elbo explore runs/demo"

test: setup  ## everything but what is slow: about ten minutes on two cores
	$(PYTEST) -m "not slow" $(ARGS)

test-slow: setup  ## kills, processes, browsers, engines of studies, long statistics, every method where one of its kind will do
	$(PYTEST) -m slow $(ARGS)

check: setup  ## lint, format, types (of JavaScript too, where node is there) and the fast tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if command -v tsc >/dev/null 2>&1; then tsc -p elboroom/explorer/jsconfig.json; \
	elif command -v npx >/dev/null 2>&1; then npx --yes --package typescript@5 tsc -p elboroom/explorer/jsconfig.json; \
	else echo "there is no tsc and no npx here: the types of the explorer's JavaScript are not checked"; fi
	$(PYTEST) -m fast

bench: setup  ## ratios against a named reference, on a machine that does nothing else; into the README too
	$(BIN)/python -m benchmarks.run

docs: setup  ## the page of every method, the catalogue of the commands, the results table, and the site: build/docs/html/index.html
	$(BIN)/python docs/pages.py
	$(BIN)/python docs/results/leaderboard.py
	$(BIN)/python docs/site/build.py

same: setup  ## does the work tree train, measure and draw what BASE does, bit for bit? make same BASE=commit
	@same=0; \
	$(BIN)/python tools/same.py $(BASE) --words || same=1; \
	$(BIN)/python tools/same.py $(BASE) --runs || same=1; \
	exit $$same

clean:
	rm -rf $(VENV) .bench-venv build *.egg-info
