# One word per job; CI uses the same words. `make` alone checks and tests.
PYTHON ?= python3
BIN := .venv/bin

all: check test ## Check, then test

help: ## List the words
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

install: .venv/installed ## Make .venv with everything that is locked

.venv/installed: requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv && $(BIN)/python -m pip install -q --require-hashes -r requirements-dev.txt
	@touch $@

run: install ## Serve the example agents at http://127.0.0.1:8000/mcp, with a PostgreSQL of its own
	@exec $(BIN)/python -m handler serve

check: install .aws-sam/checked ## Lint, types, layers, template
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

# In an environment of their own: AWS's tools want other versions than we do.
SAM := SAM_CLI_TELEMETRY=0 $(BIN)/uvx --quiet --from aws-sam-cli==1.170.0

.aws-sam/checked: template.yaml .venv/installed
	$(SAM) --with cfn-lint==1.58.0 cfn-lint $<
	$(SAM) sam validate --lint --template $<
	@mkdir -p $(@D) && touch $@

test: install ## Run every test
	$(BIN)/pytest -q

pooled: install ## Run the tests that need a database once more, behind PgBouncer in transaction mode
	TEST_POOLER=1 $(BIN)/pytest -q

lowest: .lowest/installed ## Run tests with the oldest versions that are allowed; LOWEST="…" runs others
	.lowest/bin/pytest -q $(LOWEST)

# Those that show whether a library still does what is asked of it.
LOWEST := $(patsubst %,tests/test_%.py,agents bearer catalog checkpointers custom_auth declared events \
	features forms lambdas questions reports reviews rounds saver shapes untrusted_rows validation)

.lowest/installed: pyproject.toml .venv/installed
	$(BIN)/uv venv -q --clear --python $(BIN)/python .lowest
	$(BIN)/uv pip compile -q --resolution lowest-direct --extra jwt --extra local --group dev \
		pyproject.toml -o .lowest/requirements.txt
	$(BIN)/uv pip install -q --python .lowest -r .lowest/requirements.txt
	@touch $@

build: install ## Build what AWS Lambda runs; BUILD="--config …" builds a project of yours
	$(BIN)/python -m handler build $(BUILD)

soak: install ## Hold load and faults for minutes, a million calls, hostile input at random
	$(BIN)/python -m tests.soak $(SOAK)
	HOSTILE_SEED=$$(date +%s) SCALE_CALLS=1000000 MODEL_EXAMPLES=1000 $(BIN)/pytest -q \
		-o faulthandler_timeout=7200 \
		tests/test_hostile.py tests/test_scale.py tests/test_model.py

conformance: install ## Run the official conformance suite against two processes
	$(BIN)/python -m tests.conformance

clients: install ## Drive the clients that run on Node, against two processes
	$(BIN)/python -m tests.clients

bench: .venv/benched ## Measure the endpoint beside what a team would use instead, some 25 minutes
	$(BIN)/python -m benchmarks $(BENCH)

.venv/benched: requirements-bench.txt .venv/installed
	$(BIN)/python -m pip install -q --require-hashes -r requirements-bench.txt
	@touch $@

lock: install ## Resolve the lock files anew
	$(BIN)/uv pip compile $(LOCK) --extra jwt --extra local --group dev pyproject.toml -o requirements-dev.txt
	$(BIN)/uv pip compile $(LOCK) --extra jwt -c requirements-dev.txt pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile $(LOCK) --group bench -c requirements-dev.txt -o requirements-bench.txt

# Every Python and platform that is supported, in one file, without the address of an index.
LOCK := --quiet --annotation-style line --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock"

.PHONY: all help install run check test pooled lowest soak build conformance clients bench lock
