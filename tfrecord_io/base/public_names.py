"""The names of public modules and of rooms: where each is defined. Modules are imported when a name is first used.

Tests: tests/test_public_api.py and tests/test_typing.py.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any, NoReturn

from tfrecord_io.base.registry import NAMES, PACKAGE, Point

# By the module that shows the names; "" is the package itself. Those of plugins are in `registry`.
_HOMES: dict[str, dict[str, str]] = {
    "": {
        "apps.api": "read_tfrecord read_table open_reader infer_schema write_tfrecord open_writer",
        "rows.arrays.read_arrays": "read_arrays",
        "rows.training.iterator": "iter_arrays",
        "apps.lazy_dataset": "dataset Dataset",
        "apps.derived_datasets": "mix windows",
        "read.random_access": "open_random",
        "read.record_reader": "RecordReader",
        "write.record_writer": "RecordWriter",
        "read.exploding": "explode",
        "apps.file_formats.convert": "convert",
        "write.copying": "copy",
        "write.deleting": "delete",
        "apps.follow": "follow",
        "write.compacting": "compact",
        "write.adopting": "adopt",
        "write.rearranging.split": "split merge",
        "write.rearranging.shuffle": "shuffle sample",
        "write.rearranging.dedupe": "dedupe",
        "read.join": "join",
        "read.counting": "count",
        "read.describe": "describe",
        "read.verifying.verify": "verify",
        "write.salvaging": "salvage",
        "read.diff": "diff",
        "read.file_indexes": "build_index",
        "read.file_metadata": "read_metadata",
        "bytes.versions": "show_versions",
        "columns.example": "encode_example decode_example",
        "columns.schema.schema": "Schema",
        "columns.schema.field_makers": "scalar list_ tensor sequence image",
        "apps.adapters.pandas": "register_pandas",
        "apps.adapters.polars": "scan_polars",
        "apps.adapters.duckdb": "register_duckdb",
        "errors": "TFRecordError",
        "base.options.limits": "Limits",
    },
    "formats": {
        "apps.file_formats.array_files.from_numpy_files": "open_npy open_npz open_idx",
        "apps.file_formats.array_files.to_numpy_files": "write_npy write_npz",
        "apps.file_formats.embed_files": "embed_files",
        "read.imploding": "implode",
    },
    "io": {
        "apps.tf_compat.parse_example": "parse_example parse_single_example RaggedTensor SparseTensor",
        "apps.tf_compat.parse_sequence_example": "parse_sequence_example parse_single_sequence_example",
        "apps.tf_compat.tf_features": "FixedLenFeature FixedLenSequenceFeature RaggedFeature "
        "SparseFeature VarLenFeature",
        "read.example_columns": "decode_examples",
        "write.encoded_examples": "encode_examples",
        "columns.example": "bytes_feature float_feature int64_feature",
        "columns.decode_json": "decode_json_example",
        "apps.tf_compat.decode_raw": "decode_raw",
        "bytes.format.serialized_tensor": "parse_tensor serialize_tensor",
        "apps.tf_compat.record_files": "TFRecordOptions TFRecordWriter",
    },
    "train": {
        "bytes.format.example_messages": "BytesList Example Feature FeatureList FeatureLists Features FloatList "
        "Int64List SequenceExample"
    },
    "typing": {
        "apps.lazy_dataset": "DatasetPiece",
        "apps.derived_datasets": "MixedDataset WindowedDataset",
        "apps.file_formats.array_files.array_stream": "ArrayStream",
        "apps.follow": "Follower",
        "read.chunks.skipped_region": "SkippedRegion",
        "read.explanation": "Explanation FilePlan FilterPlan",
        "read.random_access": "RandomAccess SelectedRecords",
        "read.reader": "Reader",
        "read.report": "ReadReport",
        "read.type_suggestions": "Suggestion",
        "columns.schema.field": "Field",
        "columns.schema.inferred_schema": "InferredSchema",
        "rows.training.iterator": "ArrayIterator",
        "typing": "Progress",
        "write.deleting": "DeleteReport",
        "write.writer": "WriteReport Writer",
    },
}
SHOWN_IN = ("formats", "io", "train", "typing", "errors")  # the public modules besides the package
_OF_LIBRARIES = ("beam",)  # public modules for one library, which `dir` of the package leaves out

# Threads import in turn: numpy and pyarrow import themselves in circles, of which one thread would get half-imported
# modules while another is inside.
_importing = RLock()


def homes(shown_in: str) -> dict[str, str]:
    """The names that a public module shows, by the module that defines each; "" is the package.

    >>> homes("train")["Example"]
    'tfrecord_io.bytes.format.example_messages'
    """
    of_plugins = ((point.name.rpartition("."), point.value) for point in Point.own_points(NAMES))
    return _core_homes(shown_in) | {
        name: value.partition(":")[0] for (module, _, name), value in of_plugins if module == shown_in
    }


def _core_homes(shown_in: str) -> dict[str, str]:
    core = _HOMES.get(shown_in, {})  # `beam` has names of a plugin only
    return {name: f"{PACKAGE}.{module}" for module, names in core.items() for name in names.split()}


def attach(shown_in: str, namespace: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a public module, which imports a name when it is first used.

    As in SPEC 1 of Scientific Python (https://scientific-python.org/specs/spec-0001), with names of other packages.
    """
    core, names = _core_homes(shown_in), [*homes(shown_in)]
    prefix, more = (f"{shown_in}.", ()) if shown_in else ("", (*SHOWN_IN, "__version__"))

    def __getattr__(name: str) -> Any:
        if name in more or (not shown_in and name in _OF_LIBRARIES):
            return import_module(f"{PACKAGE}.{name}")
        point = None if name in core or name.startswith("_") else Point.find(NAMES, prefix + name)
        if name not in core and point is None:
            raise _no_attribute(shown_in, name)
        with _importing:
            import_module("numpy")  # waits for a thread of the caller's that imports it, before any of its modules
            namespace[name] = getattr(import_module(core[name]), name) if point is None else point.load()
        return namespace[name]

    def __dir__() -> list[str]:
        of_others = [point.name.removeprefix(prefix) for point in Point.others(NAMES) if point.name.startswith(prefix)]
        return [*names, *(name for name in of_others if "." not in name), *more]

    return __getattr__, __dir__, names


def lazy_names(
    package: str, namespace: dict[str, Any], homes: Mapping[str, str], root: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package (PEP 562): its names, by the module that defines each.

    Modules are named from `root` on, by default from the package.

    >>> get, _, names = lazy_names("tfrecord_io.base", {}, {"byte_size": "messages.display"})
    >>> get("byte_size")(2048), names
    ('2.0 kB', ['byte_size'])
    """

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        value = namespace[name] = getattr(import_module(f"{root or package}.{homes[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return [*homes]

    return __getattr__, __dir__, [*homes]


_TYPE = "string|bool|u?int(8|16|32|64)|b?float(16|32|64)|complex(64|128)"  # as ``tf.int64``


class _NotAFunction(ModuleType):
    """A package named like a function that users look for, such as `read`: a call of it raises with the right name."""

    def __call__(self, *arguments: object, **keywords: object) -> NoReturn:
        question = _question("", self.__name__.rpartition(".")[2])
        raise TypeError(f"module {self.__name__!r} is not callable{question}")


def refuse_calls(module: str) -> None:
    """Let calls of a package with the name of what users look for say what was meant."""
    sys.modules[module].__class__ = _NotAFunction


def _no_attribute(shown_in: str, name: str) -> AttributeError:
    from tfrecord_io.base.messages.display import LateText

    def text() -> str:
        module = f"{PACKAGE}.{shown_in}" if shown_in else PACKAGE
        return f"module {module!r} has no attribute {name!r}{_question(shown_in, name)}"

    # of no object: a traceback would add a question of its own about the module
    return AttributeError(LateText(text), name=name, obj=None)


def _question(shown_in: str, name: str) -> str:
    """The question after a name that a public module does not show; of a name in another one, that module."""
    from tfrecord_io.base.messages.similar_names import did_you_mean
    from tfrecord_io.base.options.other_names import OTHER_NAMES

    if name.startswith("_"):
        return ""
    if re.fullmatch(_TYPE, name):
        return f"; types are text: write {name!r}"
    meant = OTHER_NAMES.get(f"tfr.{name}") or next(
        (f"{module}.{name}".lstrip(".") for module in ("", *SHOWN_IN) if name in public_names(module)), None
    )
    if meant is None:
        question = did_you_mean(name, [*public_names(shown_in), *(SHOWN_IN if not shown_in else ())])
        return question and f"; {question}"
    return f"; did you mean '{PACKAGE}.{meant}'?" if shown_in or "." in meant else f"; did you mean '{meant}'?"


def public_names(shown_in: str) -> list[str]:
    """All names of a public module."""
    if shown_in != "errors":
        return [*homes(shown_in)]
    from tfrecord_io import errors

    return errors.__all__


class MissingType:
    """Any type of a library that is not installed, also a generic one."""

    def __class_getitem__(cls, item: object) -> type[MissingType]:
        return cls


class LateTypes:
    """Types of a module, imported when an annotation that names a type is evaluated.

    Annotations of this package are text: ``import tfrecord_io`` imports neither pandas nor torch for them. Where a
    library cannot be imported, its types are `MissingType`.

    >>> LateTypes("decimal").Decimal, LateTypes("not_installed").utils.Loader.__name__
    (<class 'decimal.Decimal'>, 'MissingType')
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what tools look for in any object
            raise AttributeError(name)
        try:
            return getattr(import_module(self._module), name)
        except ImportError:
            return LateTypes(f"{self._module}.{name}") if name.islower() else MissingType  # a module in it
