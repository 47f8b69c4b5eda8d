# Two commands are all you need:  make run   and   make test
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PYTHON) -m pip --python $(PY) --disable-pip-version-check install -c constraints.txt
# More than the two cores of a small machine: many tests wait for browsers and processes.
JOBS   ?= 3
CELL   ?= default
ARGS   ?=
AGAIN  := The files of the tests that failed run once more, alone. A test that passes now depends on the load: mend it.
FAILED := sed -n 's/^ *"\([^:"]*\)::.*/\1/p' .pytest_cache/v/cache/lastfailed | sort -u
# With it every process, of which the tests start hundreds, would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run shell test check dist bench figures pictures parity docs soak firmware constraints clean

## run: set up, and start a cell; make run CELL=g60_welding ARGS="--rate 10"
run: $(VENV)/.runtime
	@exec $(VENV)/bin/understudy run $(CELL) $(ARGS)

## shell: a shell in which understudy can be called; exit leaves it
shell: $(VENV)/.runtime
	@echo "understudy is on the path of this shell: try understudy --help; exit leaves it"
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" VIRTUAL_ENV="$(CURDIR)/$(VENV)" exec "$${SHELL:-/bin/sh}"

## test: set up, and run the linters and the whole suite
test: check

check: $(VENV)/.dev
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache --no-logo
	$(PY) -m pytest -n $(JOBS) || \
	  { [ $$? = 1 ] && echo "$(AGAIN)" && $(PY) -m pytest $$($(FAILED)); }

## dist: wheel and sdist in dist/; the same commit gives the same bytes
dist: $(VENV)/.dev
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(PY) -m hatchling build -d dist

## bench: ratios against peers in the same run; make bench ARGS="collision --json FILE"
bench: $(VENV)/.peers
	$(PY) -m benchmarks $(ARGS)

## figures: hops of six requests, sizes, merges left to do; make figures ARGS=--write
figures: $(VENV)/.dev
	@$(PY) -m benchmarks.figures $(ARGS)

## pictures: take the screenshots of the docs anew; make pictures ARGS="fleet_page"
pictures: $(VENV)/.dev
	$(PY) -m tests.pictures $(ARGS)

## parity: write docs/parity anew: what each wire emulates, and how that was verified
parity: $(VENV)/.dev
	@$(PY) -m tests.parity

## docs: the documentation as a site in build/site: open build/site/index.html
docs: $(VENV)/.dev
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet $(ARGS)
	@echo "open build/site/index.html"

## soak: the full-size runs, and properties tried on examples that no run has seen
soak: $(VENV)/.dev
	$(PY) -m pytest -m soak -s -o faulthandler_timeout=0
	$(PY) -m pytest -n $(JOBS) --hypothesis-profile search -o faulthandler_timeout=3600

## firmware: random sessions against a grblHAL that you built: UNDERSTUDY_GRBLHAL_SIM=path
firmware: $(VENV)/.dev
	$(PY) -m tests.robots.grblhal.judge $(ARGS)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1)."; exit 2; }
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || \
	  { echo "pip is needed: apt install python3-pip"; exit 2; }
	@echo "set-up 1 of 3: making the environment $(VENV)"
	@$(PYTHON) -m venv --without-pip $(VENV)

$(VENV)/.runtime: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "set-up 2 of 3: installing packages (about 260 MB with their dependencies)"
	@$(PIP) -e '.[mesh,hmi,serial,nats,vision,log]'
	@echo "set-up 3 of 3: compiling kernels, once"
	@$(VENV)/bin/understudy warm
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python browser
	@echo "set-up 2 of 3: installing packages, with those of the tests"
	@$(PIP) -e '.[dev]'
	@echo "set-up 3 of 3: compiling kernels, once"
	@$(VENV)/bin/understudy warm
	@touch $@ $(VENV)/.runtime

# Libraries to compare with, which nothing else needs (about 470 MB).
$(VENV)/.peers: $(VENV)/.dev
	@$(PIP) -e '.[peers]'
	@touch $@

# The tests need Debian's chromium and mosquitto; a root user gets them, anyone else is told how.
.PHONY: browser
browser:
	@{ command -v chromium && PATH=$$PATH:/usr/sbin command -v mosquitto; } >/dev/null || { [ "$$(id -u)" = 0 ] && \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium mosquitto >/dev/null; }; } || \
	  { echo "The tests need chromium and mosquitto: apt install chromium mosquitto"; exit 2; }

## constraints: pin what is installed now
constraints: $(VENV)/.dev
	$(PYTHON) -m pip --python $(PY) freeze --exclude-editable > constraints.txt

clean:
	rm -rf $(VENV)
