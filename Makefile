# Two commands for a newcomer: `make demo` and `make test`. Each creates what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
# packages are compiled where they are imported, a fifth of their files, and stay so whatever the surroundings say
PIP_OPTIONS := --quiet --disable-pip-version-check --no-compile
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test machine fresh durations slow docs bench bench-quick fuzz oracle clean mutants attack screenshots sweep findings

demo: $(STAMP) ## build the demo database and serve the dashboard
	$(BIN)/goodput demo

# the allocator that a server is to run with (docs/operate/index.md), where it is installed: a fifth less time of tests
JEMALLOC := $(firstword $(wildcard /usr/lib/*/libjemalloc.so.2))
PYTEST := $(if $(JEMALLOC),LD_PRELOAD=$(JEMALLOC) MALLOC_CONF=tcache_max:65536) $(BIN)/python -m pytest
# a test that waits for ever fails with its name, and all that its process does
LIMIT := --timeout 600 --timeout-method thread
# modules that bear a mark: each process collects all that it is given
naming = $(sort $(shell grep -rl 'mark\.$(1)' tests --include='test_*.py'))

test: $(VENV)/.stamp-dev ## everything a change must pass: lint, types, layers, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	# types and layers beside the tests, which are compiled first: else each of their processes does
	{ $(BIN)/mypy && $(BIN)/lint-imports; } & checks=$$!; \
		$(PYTEST) -q --collect-only >/dev/null; $(PYTEST) $(LIMIT) -n auto --maxprocesses 8 && wait $$checks

machine: $(VENV)/.stamp-dev ## tests that need a browser or a server program, kill processes or try random worlds
	# they wait more than they compute
	$(PYTEST) $(LIMIT) -n 6 -m "machine and not slow" $(call naming,machine)

fresh: ## what a newcomer does, in plain environments: clone, make demo, wheel, extras, documents
	$(PYTHON) -m tests.fresh

slow: $(VENV)/.stamp-dev $(VENV)/.stamp-bench ## long tests, of large outside data and of the benchmark, which `make test` leaves out
	$(PYTEST) -n 3 -m slow $(call naming,slow)

docs: $(VENV)/.stamp-docs ## the documentation as a site in build/docs; links within it are checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

durations: $(VENV)/.stamp-dev ## write what each module of tests takes to tests/durations.csv
	GOODPUT_DURATIONS=1 $(PYTEST) -n 2 -m "not slow"

# the scale of the fleet, of the history, and how much of the usual amount of each format is read
GPUS ?= 1000
HOURS ?= 6
DAYS ?= 7
HISTORY_GPUS ?= 128
INGEST ?= 0.2
REPEATS ?= 1
# seconds of a step beside the yardstick's 60
STEPS ?= 2 0.6

bench: $(VENV)/.stamp-bench ## speed against the budgets, beside alternatives
	$(BIN)/python -m tests.benchmarks --gpus $(GPUS) --hours $(HOURS) --days $(DAYS) \
		--history-gpus $(HISTORY_GPUS) --ingest $(INGEST) --repeats $(REPEATS) \
		--steps $(STEPS)

bench-quick: $(VENV)/.stamp-bench ## a line of figures into tests/benchmarks/record.jsonl; WHY=: why one is worse
	$(BIN)/python -m tests.benchmarks.quick $(if $(WHY),--why "$(WHY)")

# how many mutated files are read in; the same seed gives the same files again
FILES ?= 30000
SEED ?= 1

fuzz: $(VENV)/.stamp-dev ## mutated files of every source through ingest, build and check
	$(BIN)/python -m tests.fuzz --files $(FILES) --seed $(SEED)

KILLS ?= 48
# what a person or a program could try: files, archives and Parquet that lie, servers that drip or flood,
# rows of other teams by sums and differences, twenty sessions, selects that take too much, a disk that is full, a clock
# that jumps
ATTACKED := tests/ingest/run/test_archives.py tests/ingest/run/test_unexpected.py tests/ingest/run/test_plausible_time.py \
	tests/ingest/formats/test_http_limits.py tests/ingest/bundle \
	tests/queries/sandbox tests/queries/storage/test_damaged_files.py tests/queries/storage/test_row_access.py \
	tests/queries/marts/test_rows_of_a_team.py tests/queries/marts/test_times_of_other_teams.py tests/queries/test_database.py \
	tests/app/access tests/app/server tests/app/dashboard/test_hostile_names.py

attack: $(VENV)/.stamp-dev ## hostile input, servers, selects and kills, with what each took; FILES=, KILLS=
	$(BIN)/python -m tests.fuzz --files $(FILES) --seed $(SEED)
	for each in kills kills_of_copies kills_of_servers; do \
		$(BIN)/python -m tests.fuzz.$$each --kills $(KILLS) --seed $(SEED) || exit; done
	$(PYTEST) -n 2 -m "not slow or machine" --durations=20 $(ATTACKED)

# how many random small worlds are compared
COUNT ?= 300

oracle: $(VENV)/.stamp-dev ## the ledger of random worlds against a brute-force one, to the millisecond, and more examples
	$(BIN)/python -m tests.oracle --count $(COUNT) --seed $(SEED)
	$(BIN)/python -m tests.oracle --count $(COUNT) --seed $(SEED) --having short-steps more-phases
	GOODPUT_EXAMPLES=10 $(BIN)/python -m pytest -q -n 2 --dist load -m "" tests/queries/rules/test_conservation.py \
		tests/queries/ledger_build/test_incremental_runs.py tests/queries/ledger_build/test_placed_again.py \
		tests/queries/marts/test_times_of_other_teams.py

# how many made-up fleets the rules of findings are scored on
FLEETS ?= 20

findings: $(VENV)/.stamp-dev ## precision and recall of each rule over made-up fleets
	$(BIN)/python -m tests.findings --fleets $(FLEETS) --seed 500

SAMPLE ?= 20
SEED ?= 1

mutants: $(VENV)/.stamp-dev ## change the rules one place at a time; prints the changes that no test notices
	$(BIN)/python -m tests.mutations --sample $(SAMPLE) --seed $(SEED)

screenshots: $(VENV)/.stamp-dev ## take the README's pictures of the demo in a real browser
	$(BIN)/python -m tests.browser.screenshots

sweep: $(VENV)/.stamp-dev ## open every page in a real browser without each of the sources
	$(BIN)/python -m pytest -q tests/browser/test_sweep.py -m slow

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP_OPTIONS) --upgrade "pip>=25.1"
	$(BIN)/python -m pip install $(PIP_OPTIONS) -e .
	touch $@

$(VENV)/.stamp-dev: $(STAMP)
	$(BIN)/python -m pip install $(PIP_OPTIONS) --group dev
	touch $@

$(VENV)/.stamp-bench: $(STAMP)
	$(BIN)/python -m pip install $(PIP_OPTIONS) --group bench
	# it asks for an older pyarrow than ours, and runs with ours
	$(BIN)/python -m pip install $(PIP_OPTIONS) --no-deps "daft>=0.7" fsspec
	touch $@

clean:
	rm -rf $(VENV)

$(VENV)/.stamp-docs: $(STAMP)
	$(BIN)/python -m pip install $(PIP_OPTIONS) --group docs
	touch $@
