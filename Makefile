# Everything starts here: `make demo` shows the product, `make test` proves it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := data/demo
# Two or more tests at a time, those that share fixtures on one worker; the long ones are not left to the end.
SHARED := -n auto --dist loadgroup --no-loadscope-reorder

.PHONY: help install demo test fast-test coverage soak lint bench docs ui browser servers clean
help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing pinned dependencies into $(VENV) (some minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

install: $(READY)  ## create .venv with the pinned dependencies

demo: $(READY)  ## run the main job on a built-in economy of 40 firms, every model included, in data/demo
	@mkdir -p $(DEMO)/analysts
	@$(BIN)/cbmt --project $(DEMO) simulate --firms 40
	@cp docs/calibration-example/*.csv $(DEMO)/analysts
	@grep -q '^\[networks\]' $(DEMO)/cbmt.toml || printf '%s\n' '' '[networks]' \
	  'profile = "demo"  # searches and trainings so short that a demo has time for them; quick is the least for use' \
	  '' '[calibration]' 'tickers = "analysts/tickers.csv"' 'quarters = "analysts/quarters.csv"' \
	  'forecasts = "analysts/forecasts.csv"' >> $(DEMO)/cbmt.toml
	@$(BIN)/cbmt --project $(DEMO) run

ui: $(READY)  ## open the Dagster UI on 127.0.0.1:3000 (make ui PROJECT=folder; the demo by default)
	@$(BIN)/cbmt --project $(or $(PROJECT),$(DEMO)) ui

test: $(READY) browser servers  ## every test; prints the slowest twenty
	@$(BIN)/python -m pytest $(SHARED) --durations=20

fast-test: $(READY)  ## the tests that take seconds
	@$(BIN)/python -m pytest $(SHARED) -m 'not slow'

coverage: $(READY)  ## lines and branches that the quick tests reach, module by module
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check coverage==7.17.3 pytest-cov==7.1.0
	@$(BIN)/python -m pytest $(SHARED) -m 'not slow' --cov=cbmt_core --cov=cbmt_pipeline --cov-branch \
	  --cov-report=term:skip-covered

soak: $(READY)  ## the long trials of docs/reliability.md: kills, full disks, load, sameness, mutants; hours
	@$(BIN)/python -m pytest -n0 -s -m soak

lint: $(READY)  ## style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(READY)  ## speed, as ratios and growth, on this machine
	@for name in simulate cohorts models evaluation training_speed; do \
	  echo "== bench/$$name.py"; $(BIN)/python bench/$$name.py || exit 1; done

docs: $(READY)  ## rewrite the pages that are made from code
	@for page in tables exhibits; do $(BIN)/python -m cbmt_core.report.dictionary $$page > docs/$$page.md; done

browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing Chromium for the UI tests" && \
	    apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	  echo "no Chromium found: the tests that drive the UI in a browser will be skipped"

servers:
	@{ command -v redis-server >/dev/null && ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; } || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing Redis and PostgreSQL for the tests" && \
	    apt-get update -qq >/dev/null && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server postgresql >/dev/null; } || \
	  echo "no Redis or PostgreSQL found: the tests that need them will be skipped"

clean:  ## remove the virtual environment and the demo
	@rm -rf $(VENV) $(DEMO)
