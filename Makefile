# `make demo` and `make test` are the two commands a new clone needs; both set up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test quick-tests mutants test-slow test-bounds test-versions lint java clean

setup: $(READY) java

# One stamp file makes the installation idempotent: it is repeated only when the pinned versions change.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Coverlay needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/coverlay list >/dev/null  # compiles the sources and fills the cache of lists: the first one takes a second
	@touch $@

# Spark needs Java 17 or newer. Where we may not install it the libraries still work, so this never fails.
java:
	@if ! command -v java >/dev/null 2>&1 && [ -z "$$JAVA_HOME" ]; then \
		if [ "$$(id -u)" = 0 ]; then sudo=; elif sudo -n true 2>/dev/null; then sudo=sudo; else sudo=no; fi; \
		if [ "$$sudo" != no ] && command -v apt-get >/dev/null; then \
			$$sudo apt-get update -qq && $$sudo apt-get install -y -qq openjdk-17-jre-headless >/dev/null; \
		elif [ "$$sudo" != no ] && command -v dnf >/dev/null; then $$sudo dnf install -y -q java-17-openjdk-headless; \
		elif [ "$$sudo" != no ] && command -v apk >/dev/null; then $$sudo apk add -q openjdk17-jre-headless; \
		elif command -v brew >/dev/null; then brew install -q openjdk@17; \
		fi; \
		command -v java >/dev/null 2>&1 || \
			echo "Java 17 or newer is missing and could not be installed: coverlay run and analyze need it, the libraries do not."; \
	fi

demo: setup
	$(BIN)/coverlay demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports

# At the same time: tests that start Spark or wait for a process leave a core idle for moments.
test: setup
	@$(MAKE) --no-print-directory -j 2 lint quick-tests

# Bytecode is written whatever the environment says: a hundred processes of the tests would compile the sources again.
quick-tests: setup
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder

# Plants small faults one at a time in a copy of the tree; each must make a quick test fail. At most an hour.
mutants: setup
	$(BIN)/python -m tests.mutants.run

test-slow: setup test-bounds
	$(BIN)/pytest -m slow

# The suites of the compiled libraries once more, with every array access checked. Compiles everything for itself.
test-bounds: setup
	NUMBA_BOUNDSCHECK=1 $(BIN)/pytest -m "not slow" tests/covering tests/topk

# The kernels' tests and a small experiment on the oldest and newest supported numba, numpy, networkx and pyspark, each set
# in an environment of its own, and the tests of our hooks on every numba in between. Installs for minutes; prints a table.
test-versions: setup
	$(BIN)/python -m tests.versions.run

clean:
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache
