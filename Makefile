# Two commands set up a fresh machine: `make demo` shows the program, `make test` tests it.
# Both install into .venv, and again after a change of pyproject.toml.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq
BENCH  := $(VENV)/bench

# Arguments of pytest; `make test ARGS='-k planner'` runs a part.
# One process more than cores: some tests wait for the disk or for other processes.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
ARGS ?=

# The seconds of `make stories`, in memory and again on disk.
STORIES_FOR ?= 300
# The seconds of `make soak`, in which all programs write at once.
SOAK_FOR ?= 600
# The seconds of each test of `make machines`: random stories of several machines, and five that race.
MACHINES_FOR ?= 600
# The steps of `make walk` through JP's own history; RECONCILE_JP_MIRROR names a clone of its repository.
WALK_STEPS ?= 500
WALK_SEED ?= 1
# The rounds of `make git-stories`: each is one operation of git or of an agent, with hooks and merge driver.
GIT_ROUNDS ?= 1000
GIT_SEED ?= 1
# How many events each process of `make race` appends to each conversation.
RACE_EVENTS ?= 200

# The time of `make fuzz`.
MINUTES ?= 60

# The modules of `make mutants` (all), one in how many changes it tries, and its time in seconds.
MODULES ?=
MUTANTS_EVERY ?= 1
MUTANTS_FOR ?= inf
# A part of the description of the mutants to try, as `make mutants` prints it (default: all).
MUTANT ?=

# Where no bytecode may be written beside the sources, it is kept here. Otherwise every process of the tests compiles
# pytest's plugins and the tests again.
ifdef PYTHONDONTWRITEBYTECODE
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.pytest_cache/bytecode
endif

DEMO := fixtures/demo/run

.PHONY: help demo test long modes worlds stories git-stories soak machines walk race browser agents faults fuzz mutants coverage lint format docs map screens bench bench-machines bench-rules bench-secrets flame clean
.DELETE_ON_ERROR:

help:
	@echo 'make demo      a small store and workspace: dry run, apply, and the second run with nothing to do'
	@echo 'make test      the tests (ARGS="-k word" for a part, JOBS=0 in one process)'
	@echo 'make long      tests that make test leaves out: most scenarios on a fake disk (pyfakefs) and on a real one, some under faults, hooks, pipes, hostile files, generated pages'
	@echo 'make modes     for root: the tests that need the modes of files to bind the process'
	@echo 'make worlds    every small world, about an hour of one core (WORLDS_EVERY=6: one in six of them)'
	@echo 'make soak      an editor, JP, git and two watchers at once, for SOAK_FOR=600 seconds'
	@echo 'make machines  random stories of two to five machines with one remote, and five that race and are killed, for MACHINES_FOR=600 seconds each'
	@echo 'make walk      through the history of a clone of JP (RECONCILE_JP_MIRROR=DIR), WALK_STEPS=500 steps from WALK_SEED=1'
	@echo 'make race      eight programs that use the library, and a watcher, killed at random, RACE_EVENTS=200 events each'
	@echo 'make browser   the page of ls --tree --html in Chromium (skipped where there is none)'
	@echo 'make agents    what is known of Claude Code, tried with the program itself, from npm (skipped where there is none)'
	@echo 'make stories   random stories, in memory and on disk, for STORIES_FOR=300 seconds each'
	@echo 'make git-stories  random branches, merges, rebases and stashes in three worktrees, GIT_ROUNDS=1000 from GIT_SEED=1'
	@echo 'make fuzz      random input for every reader of a file, for MINUTES=60; a failing input is kept as a test'
	@echo 'make coverage  the tests, with every branch of reconcile/model and reconcile/planning required'
	@echo 'make faults    every command of every scenario killed and refused space at each step: an hour or two'
	@echo 'make mutants   small mistakes in pure modules that no test notices (MODULES="planning.context", MUTANTS_FOR=600 seconds)'
	@echo 'make lint      style, types and import rules'
	@echo 'make format    let ruff lay out the code'
	@echo 'make docs      the documentation as a site in build/site; fails on a broken link, a page without an index, a misspelling'
	@echo 'make map       draws the packages and their imports, docs/map.svg'
	@echo 'make screens   writes docs/screens: each command at a terminal of 80 columns, as text and SVG'
	@echo 'make bench     the benchmark, half an hour (ARGS="--only no-op" for a question, ARGS=--growth for 100,000)'
	@echo 'make bench-machines  a sync with a remote beside rsync, unison and restic (ARGS="--size 1000 --ssh")'
	@echo 'make bench-secrets  planted keys found and false alarms, beside detect-secrets if that is installed'
	@echo 'make flame     flame graphs of a first run and of a projection, for docs (ARGS="--size 1000")'
	@echo 'make bench-rules  CPU time of the planner in memory, microseconds a conversation (ARGS="--against DIR" for another checkout)'
	@echo 'make clean     remove .venv and all generated files'

demo: $(VENV)/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(DEMO)

test: $(VENV)/.installed-dev
	$(BIN)/pytest --numprocesses=$(JOBS) --dist=worksteal $(ARGS)

long: $(VENV)/.installed-dev
	$(BIN)/pytest --numprocesses=$(JOBS) --dist=worksteal -m 'long and not slow' $(ARGS)

# The tests that need the modes of files to bind them. Root plays them without the two capabilities that ignore modes.
MODES := -dac_override,-dac_read_search
modes: $(VENV)/.installed-dev
	$(if $(filter 0,$(shell id -u)),setpriv --bounding-set=$(MODES) --inh-caps=$(MODES)) \
		$(BIN)/pytest -m modes $(ARGS)

worlds: $(VENV)/.installed-dev
	$(BIN)/pytest --numprocesses=$(JOBS) -m slow tests/properties/test_worlds.py $(ARGS)

stories: $(VENV)/.installed-dev
	STORIES_FOR=$(STORIES_FOR) $(BIN)/pytest --numprocesses=$(JOBS) -m slow tests/properties/test_stories.py tests/properties/test_lossy_stories.py \
	  tests/stories/test_git_walk.py::test_small_histories $(ARGS)

git-stories: $(VENV)/.installed-dev
	GIT_STORIES_ROUNDS=$(GIT_ROUNDS) GIT_STORIES_SEED=$(GIT_SEED) $(BIN)/pytest -m "not slow" -rP tests/stories/test_git_stories.py $(ARGS)

soak: $(VENV)/.installed-dev
	SOAK_FOR=$(SOAK_FOR) $(BIN)/pytest -m slow -rP tests/stories/test_soak.py $(ARGS)

machines: $(VENV)/.installed-dev
	MACHINES_FOR=$(MACHINES_FOR) $(BIN)/pytest --numprocesses=$(JOBS) -m slow -rP tests/remote $(ARGS)

walk: $(VENV)/.installed-dev
	RECONCILE_WALK_STEPS=$(WALK_STEPS) RECONCILE_WALK_SEED=$(WALK_SEED) $(BIN)/pytest -m slow -rsP tests/stories/test_git_walk.py::test_jps_own_history $(ARGS)

# atheris is not built for every system and Python; without it, only Hypothesis searches, and prints that.
fuzz: $(VENV)/.installed-dev
	@$(PIP) install --editable '.[dev,fuzz]' || echo 'atheris could not be installed into $(VENV): see above'
	$(BIN)/python -m tests.fuzz.run --minutes $(MINUTES) $(ARGS)

# Without the tests of other rooms: coverage makes each test slower, and these cover every branch.
COVERING := tests/cli tests/engine tests/index tests/inspect tests/model tests/planning tests/properties/test_parts.py \
	tests/scenarios/test_fixed_scenarios.py tests/scenarios/test_scenarios.py tests/stories/test_claude_code.py \
	tests/stories/test_claudesidian_sides.py tests/stories/test_conflicts.py \
	tests/stories/test_git_merges.py tests/stories/test_leslie_sides.py tests/stories/test_recover.py tests/stories/test_recovery.py \
	tests/stories/test_sharing_sessions.py tests/stories/test_undo.py
coverage: $(VENV)/.installed-dev
	$(BIN)/pytest --numprocesses=$(JOBS) --dist=worksteal --cov=reconcile.model --cov=reconcile.planning --cov-report= \
		-m 'not slow' -k 'not fake and not real' $(COVERING)
	$(BIN)/coverage report --include='reconcile/model/*,reconcile/planning/*' --fail-under=100

# The library: RACE_EVENTS events of each of eight processes to each of three conversations, and kills.
race: $(VENV)/.installed-dev
	RACE_EVENTS=$(RACE_EVENTS) $(BIN)/pytest -m slow tests/library/test_race.py $(ARGS)

# In one process at every step, and real processes under strace at every system call that changes something.
faults: $(VENV)/.installed-dev
	$(BIN)/pytest --numprocesses=$(JOBS) -m slow tests/scenarios/test_faults.py tests/library/test_faults.py \
	  tests/state/test_private_list.py tests/stories/test_unreadable.py tests/stories/test_interrupted.py $(ARGS)

browser: $(VENV)/.installed-dev
	$(BIN)/pytest tests/browser $(ARGS)

# The program is installed into .pytest_cache/agents (600 MB), and answered by a stub: no account, and no network.
agents: $(VENV)/.installed-dev
	$(BIN)/pytest -m slow -rs tests/agents $(ARGS)

mutants: $(VENV)/.installed-dev
	$(BIN)/python -m tests.mutation --every $(MUTANTS_EVERY) --for $(MUTANTS_FOR) --only '$(MUTANT)' $(MODULES)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.installed-docs
	$(BIN)/codespell *.md docs fixtures/README.md reconcile cli
	$(BIN)/sphinx-build -q -W --keep-going -E -c docs . build/site

map: $(VENV)/.installed-dev
	$(BIN)/python -m tests.support.package_map

screens: $(VENV)/.installed-dev
	$(BIN)/python -m tests.support.screens

# Measured is the wheel in an environment of its own, as a user has it: an editable installation starts later.
bench: $(VENV)/.installed-dev
	$(make-bench)
	$(BENCH)/bin/python -m tests.bench.run $(ARGS)

bench-rules: $(VENV)/.installed-dev
	$(BIN)/python -m tests.bench.rules $(ARGS)

bench-machines: $(VENV)/.installed-dev
	$(BIN)/python -m tests.bench.machines $(ARGS)

bench-secrets: $(VENV)/.installed-dev
	$(BIN)/python -m tests.bench.secrets $(ARGS)

flame: $(VENV)/.installed-dev
	@$(PIP) install --editable '.[dev,profile]'
	$(BIN)/python -m tests.bench.flame $(ARGS)

clean:
	rm -rf $(VENV) .demo .demo-day build dist *.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov
	find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment without a working pip (missing, incomplete, or its Python was removed) is created again.
define make-venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'reconcile needs Python 3.11 or newer, and $(PYTHON) is not.' \
	       'Name another one: make PYTHON=/path/to/python3 ...' >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || \
	  { echo 'Making $(VENV)'; $(PYTHON) -m venv --clear $(VENV); }
endef

define make-bench
	@$(PYTHON) -m venv --clear --without-pip $(BENCH)
	@$(BIN)/python -m build --outdir $(BENCH)/dist . > /dev/null
	@$(PIP) --python $(BENCH)/bin/python install $(BENCH)/dist/*.whl
endef

$(VENV)/.installed: pyproject.toml
	$(make-venv)
	@echo 'Installing reconcile into $(VENV)'
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml
	$(make-venv)
	@echo 'Installing reconcile and the packages of its tests into $(VENV)'
	@$(PIP) install --editable '.[dev]'
	@touch $(VENV)/.installed $@

$(VENV)/.installed-docs: $(VENV)/.installed-dev
	@echo 'Installing the packages of the documentation into $(VENV)'
	@$(PIP) install --editable '.[docs]'
	@touch $@
