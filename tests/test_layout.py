"""Who may know whom: the floors of the package, what an import of it costs, and which names are public."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrecord_io as tfr

# A module knows its own floor and those below. A new top level module gets a place here.
FLOORS = {
    "errors": 0,
    "options": 0,
    "keywords": 0,
    "plain_table": 0,
    "progress": 0,
    "_compat": 0,
    "schema": 1,
    "storage": 1,
    "compression": 1,
    "engine": 2,
    "_native": 2,
    "framing": 3,
    "indexing": 3,
    "resync": 3,
    "splitting": 3,
    "payloads": 3,
    "sink": 3,
    "sharded_sink": 3,
    "dealing": 3,
    "tensors": 3,
    "arrow": 3,
    "messages": 3,
    "example": 3,
    "units": 4,
    "decoding": 4,
    "session": 4,
    "beside": 4,
    "folder_columns": 4,
    "governing": 4,
    "origins": 4,
    "random_access": 4,
    "reader": 4,
    "writer": 4,
    "inference": 4,
    "metadata": 4,
    "parsing": 4,
    "numpy_files": 4,
    "tools": 4,
    "arrays": 5,
    "adapters": 5,
    "__init__": 6,
    "__main__": 6,
    "api": 6,
    "versions": 6,
    "cli": 6,
}
AT_ONCE = {
    "click",
    "crc32c",
    "fsspec",
    "google",
    "isal",
    "numpy",
    "pyarrow",
}  # third parties a module may import at its top
WHEN_NEEDED = {"pandas", "rich", "tqdm", "dateutil", "ml_dtypes", "PIL"}  # inside functions only
# Adapters alone import these, each its own, inside functions.
OPTIONAL = {
    "polars",
    "duckdb",
    "xarray",
    "dask",
    "ray",
    "pyspark",
    "torch",
    "s3fs",
    "gcsfs",
    "datasets",
    "jax",
    "tensorflow",
    "tfx_bsl",
}


def package_files() -> Iterator[tuple[str, Path]]:
    spec = importlib.util.find_spec("tfrecord_io")
    assert spec is not None
    for location in spec.submodule_search_locations or ():
        for path in sorted(Path(location).rglob("*.py")):
            yield path.relative_to(location).with_suffix("").as_posix(), path


FILES = dict(package_files())


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(node: ast.AST, inside: bool = False) -> Iterator[tuple[str, bool, int]]:
    """(dotted name, whether it waits for a call, line) of every import below `node`; type-only ones count as waiting."""
    for child in ast.iter_child_nodes(node):
        waits = (
            inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_type_checking(child)
        )
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield alias.name, waits, child.lineno
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: imports are absolute"
            assert child.module is not None
            for alias in child.names:  # `from tfrecord_io import errors` names a module, too
                yield f"{child.module}.{alias.name}", waits, child.lineno
        else:
            yield from imports(child, waits)


def imports_of(name: str) -> list[tuple[str, bool, int]]:
    return list(imports(ast.parse(FILES[name].read_text(encoding="utf-8"))))


def floor_of(module: str) -> int:
    unit = module.split("/")[0]
    assert unit in FLOORS, f"tfrecord_io/{unit} has no floor: give it one in tests/test_layout.py"
    return FLOORS[unit]


@pytest.mark.parametrize("name", FILES)
def test_imports_never_go_up(name: str) -> None:
    own = floor_of(name)
    for target, _, line in imports_of(name):
        parts = target.split(".")
        if parts[0] != "tfrecord_io":
            continue
        unit = parts[1] if len(parts) > 1 and parts[1] in FLOORS else "__init__"
        assert FLOORS[unit] <= own, (
            f"tfrecord_io/{name}.py:{line} (floor {own}) imports {target} (floor {FLOORS[unit]})"
        )


@pytest.mark.parametrize("name", FILES)
def test_third_parties_are_imported_where_they_may_be(name: str) -> None:
    adapter = name.startswith("adapters/")
    optional = set()
    for target, waits, line in imports_of(name):
        top = target.split(".")[0]
        if top == "tfrecord_io" or top in sys.stdlib_module_names:
            continue
        where = f"tfrecord_io/{name}.py:{line} imports {target}"
        assert top in AT_ONCE | WHEN_NEEDED | OPTIONAL, f"{where}, which is no dependency"
        assert waits or top in AT_ONCE, f"{where} at import time"
        assert top != "click" or name.startswith("cli/"), where
        if top in OPTIONAL:
            assert adapter, f"{where}: only adapters do"
            optional.add(top)
    assert len(optional) <= 1, f"tfrecord_io/{name}.py: one adapter, one library: {sorted(optional)}"


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_brings_no_pandas_and_nothing_optional() -> None:
    unwanted = sorted(WHEN_NEEDED | OPTIONAL | {"click"})
    assert run_python(f"import sys, tfrecord_io; print([m for m in {unwanted!r} if m in sys.modules])") == "[]"


def test_command_line_starts_without_rich_and_pandas() -> None:
    assert run_python("import sys, tfrecord_io.cli; print([m for m in ('pandas', 'rich') if m in sys.modules])") == "[]"


# ---- public names and the version

CALLS = """
    read_tfrecord read_table read_arrays iter_arrays open_reader read_metadata write_tfrecord open_writer infer_schema
    RecordReader RecordWriter
    encode_example decode_example bytes_feature float_feature int64_feature count_records verify describe convert
    from_npy from_npz from_idx to_npy to_npz
    register_pandas show_versions parse_example serialize_tensor parse_tensor decode_raw open_random
    scalar list_ text bytes_ tensor sequence image
""".split()
MESSAGES = "Example SequenceExample Features Feature BytesList FloatList Int64List FeatureList FeatureLists".split()
ERRORS = """
    TFRecordError CorruptRecordError TruncatedRecordError DecodeError FeatureTypeError EncodeError SchemaError
    FeatureNotFoundError CompressionError MissingDependencyError PrecisionWarning SchemaWarning StoppedEarlyWarning SlowEngineWarning
""".split()
SCHEMAS = """
    Schema InferredSchema Field FixedLenFeature VarLenFeature FixedLenSequenceFeature RaggedFeature SparseFeature SparseTensor RaggedTensor
""".split()
RESULTS = (
    "ArrayIterator ArrayStream RandomAccess Reader Writer WriteReport ReadReport SkippedRegion Metadata".split()
)  # what calls give
LATER = """
    dataset salvage split merge shuffle
""".split()


@pytest.mark.parametrize("name", [*CALLS, *SCHEMAS, *MESSAGES, *ERRORS])
def test_public_name_is_there(name: str) -> None:
    assert name in tfr.__all__
    assert callable(getattr(tfr, name))


def test_no_public_name_is_that_of_a_module() -> None:
    """The module's import would put it in the name's place."""
    assert not {name.split("/")[0] for name in FILES} & set(tfr.__all__)


def test_all_is_curated() -> None:
    assert len(set(tfr.__all__)) == len(tfr.__all__)
    assert set(tfr.__all__) <= {*CALLS, *SCHEMAS, *MESSAGES, *ERRORS, *RESULTS, *LATER, "__version__"}
    for name in tfr.__all__:
        assert hasattr(tfr, name)


@pytest.mark.parametrize("name", CALLS)
def test_public_call_explains_itself(name: str) -> None:
    assert (getattr(tfr, name).__doc__ or "").strip()


def test_version_is_the_installed_one() -> None:
    assert importlib.metadata.version("tfrecord_io") == tfr.__version__
