# Two commands are all you need:  make run   and   make test
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PYTHON) -m pip --python $(PY) --disable-pip-version-check install -q -c constraints.txt
JOBS   ?= 2

.PHONY: run test check bench soak constraints clean

## run: set up, and start the default cell
run: $(VENV)/.runtime
	@exec $(VENV)/bin/understudy run

## test: set up, and run the linters and the whole suite
test: check

check: $(VENV)/.dev
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache --no-logo
	$(PY) -m pytest -n $(JOBS)

## bench: figures as ratios against peers in the same run
bench: $(VENV)/.dev
	$(PY) -m benchmarks

## soak: the full-size runs, and properties tried on examples that no run has seen
soak: $(VENV)/.dev
	$(PY) -m pytest -m soak -s
	$(PY) -m pytest -n $(JOBS) --hypothesis-profile search

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1)."; exit 2; }
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || \
	  { echo "pip is needed: apt install python3-pip"; exit 2; }
	$(PYTHON) -m venv --without-pip $(VENV)

$(VENV)/.runtime: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[mesh,hmi,serial]'
	$(VENV)/bin/understudy warm
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python browser
	$(PIP) -e '.[dev]'
	$(VENV)/bin/understudy warm
	@touch $@ $(VENV)/.runtime

# The browser tests need Debian's chromium; a root user gets it, anyone else is told how.
.PHONY: browser
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; }; } || \
	  { echo "The browser tests need chromium: apt install chromium"; exit 2; }

## constraints: pin what is installed now
constraints: $(VENV)/.dev
	$(PYTHON) -m pip --python $(PY) freeze --exclude-editable > constraints.txt

clean:
	rm -rf $(VENV)
