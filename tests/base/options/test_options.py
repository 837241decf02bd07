"""Keywords: each is checked in the call, means the same everywhere, and is documented in every call."""

from __future__ import annotations

import inspect
import re
from ast import literal_eval
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from reading import read_by
from records import example, int64s, written
from tfrecord_io.base import MIB, ReadOptions
from tfrecord_io.base.options.on_damage import OnDamage
from tfrecord_io.base.options.other_names import OTHER_NAMES
from tfrecord_io.base.options.read import DatasetOptions
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.rows.arrays.array_options import ArrayOptions
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.store.read.source import MOST_MANIFEST_BYTES
from tfrecord_io.typing import UNSET
from tfrecord_io.write.salvage_writer import SalvageOptions

READING = [tfr.read_tfrecord, tfr.read_table, tfr.open_reader, tfr.infer_schema]
WRITING = [tfr.write_tfrecord, tfr.open_writer]
OF_DATASET = {f.name for f in fields(ReadOptions)}
DAILY = ["columns", "filters", "schema", "limit", "on_error", "storage_options", "filesystem", "progress"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "a.tfrecord", [example(x=int64s(1))])


def write(path: Path, **more: Any) -> Any:
    return tfr.write_tfrecord({"x": [1]}, path.with_name("out"), **more)


def open_writer(path: Path, **more: Any) -> Any:
    return tfr.open_writer(path.with_name("out"), **more)


@pytest.mark.parametrize("call", [*READING, write, open_writer])
def test_an_unknown_keyword_is_a_type_error_that_names_it(path: Path, call: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="'colums'"):
        call(path, colums=["x"])
    assert not path.with_name("out").exists()


BAD = [
    ({"batch_size": 0}, ValueError),
    ({"batch_size": 1.5}, TypeError),
    ({"batch_size": True}, TypeError),
    ({"batch_bytes": -1}, ValueError),
    ({"limit": -1}, ValueError),
    ({"limit": "5"}, TypeError),
    ({"offset": -1}, ValueError),
    ({"offset": 2**63}, ValueError),
    ({"limit": 2**63}, ValueError),
    ({"batch_size": 2**63}, ValueError),
    ({"offset": None}, TypeError),
    ({"sample": 0}, ValueError),
    ({"sample": "most"}, TypeError),
    ({"threads": 0}, ValueError),
    ({"threads": 2.0}, TypeError),
    ({"limits": 5}, TypeError),
    ({"limits": {"features": 5}}, TypeError),
    ({"record_type": "json"}, ValueError),
    ({"on_new": "drop"}, ValueError),
    ({"on_error": "ignore"}, ValueError),
    ({"on_error": "leave"}, ValueError),
    ({"filters": 5}, TypeError),
    ({"filters": [("x", 1)]}, ValueError),
    ({"compression": "lzma2"}, ValueError),
    ({"columns": 5}, TypeError),
    ({"columns": [5]}, TypeError),
    ({"schema": 5}, TypeError),
    ({"include_file_paths": 5}, TypeError),
]


@pytest.mark.parametrize(("given", "error"), BAD, ids=lambda v: str(v) if isinstance(v, dict) else v.__name__)
def test_a_wrong_value_for_reading_is_refused_by_the_call(
    path: Path, given: dict[str, Any], error: type[Exception]
) -> None:
    (name,) = given
    with pytest.raises(error, match=name) as caught:
        read_by(tfr.open_reader, path, **given)
    assert caught.type is error
    with pytest.raises(error, match=name):
        read_by(tfr.read_table, path, **given)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"record_bytes": 2**31}, ValueError),
        ({"record_bytes": 0}, ValueError),
        ({"features": 0}, ValueError),
        ({"features": 2**63}, ValueError),
        ({"features": 1.5}, TypeError),
        ({"expansion_bytes": -1}, ValueError),
        ({"expansion_bytes": True}, TypeError),
        ({"decompression_ratio": 0.5}, ValueError),
        ({"decompression_ratio": "4"}, TypeError),
    ],
    ids=str,
)
def test_a_wrong_limit_is_refused(given: dict[str, Any], error: type[Exception]) -> None:
    ((name, value),) = given.items()
    with pytest.raises(error, match=f"^{name}={re.escape(repr(value))}: expected"):
        tfr.Limits(**given)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"float64": "raise"}, ValueError),
        ({"record_type": "json"}, ValueError),
        ({"column_encoding": {"x": "base64"}}, ValueError),
        ({"column_encoding": {"nope": "raw"}}, tfr.errors.FeatureNotFoundError),
        ({"compression": "lzma2"}, ValueError),
        ({"threads": 0}, ValueError),
        ({"shards": 0}, ValueError),
        ({"shards": 2.0}, TypeError),
        ({"max_shard_bytes": 0}, ValueError),
        ({"max_shard_bytes": True}, TypeError),
        ({"mode": "yes"}, ValueError),
        ({"mode": "w"}, ValueError),
        ({"write_index": "yes"}, tfr.errors.FeatureNotFoundError),
        ({"write_index": 1}, TypeError),
        ({"schema": 5}, TypeError),
    ],
    ids=str,
)
def test_a_wrong_value_for_writing_is_refused_and_nothing_is_written(
    path: Path, given: dict[str, Any], error: type[Exception]
) -> None:
    (name,) = given
    with pytest.raises(error, match=name) as caught:
        write(path, **given)
    assert caught.type is error
    assert [p.name for p in path.parent.iterdir()] == ["a.tfrecord"]


def test_dtype_backend_is_checked(path: Path) -> None:
    with pytest.raises(ValueError, match="dtype_backend"):
        tfr.read_tfrecord(path, dtype_backend="polars")
    with pytest.raises(TypeError):
        tfr.read_table(path, dtype_backend="pyarrow")


@pytest.mark.parametrize("call", READING)
def test_every_reading_call_shows_its_keywords(call: Callable[..., Any]) -> None:
    """Those of every day, in the same order, before its own; `dataset` has all."""
    shown = inspect.signature(call).parameters
    left_out = {"schema", "filters"} if call is tfr.infer_schema else set()
    own = {tfr.read_tfrecord: ["dtype_backend"], tfr.open_reader: ["batch_size", "batch_bytes"]}.get(call, [])
    names = [name for name in DAILY if name not in left_out]
    assert [*shown] == ["source", *names, *own]
    assert shown["source"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for name, p in shown.items() if name != "source")
    assert {name: shown[name].default for name in names} == left_to_datasets(names)
    documented(call)


def test_a_dataset_has_all_keywords_of_reading() -> None:
    shown = dict(inspect.signature(tfr.dataset).parameters)
    daily = [name for name in DAILY if name != "filesystem"]  # which comes last of the reading ones, as in writers
    assert [*shown][:8] == ["source", *daily]
    del shown["source"]
    defaults = left_to_datasets([f.name for f in fields(ReadOptions)])
    assert {name: p.default for name, p in shown.items()} == defaults | {"offset": 0}  # which adds to that of a dataset
    documented(tfr.dataset)


def left_to_datasets(names: Iterable[str]) -> dict[str, Any]:
    """The defaults of keywords that a dataset may have stated: None or, where None is a value, or none, UNSET."""
    defaults = {name: getattr(ReadOptions, name) for name in names} | {"on_error": None}
    return {name: None if defaults[name] is None else UNSET for name in names}


@pytest.mark.parametrize("call", WRITING)
def test_every_writing_call_shows_its_keywords(call: Callable[..., Any]) -> None:
    shown = inspect.signature(call).parameters
    expected = {f.name: f.default for f in fields(WriteOptions) if f.name not in WriteOptions.internal}
    own = {"data", "path"}
    if call is tfr.open_writer:
        expected = {name: value for name, value in expected.items() if name not in ("record_dim", "overwrite_where")}
    assert {name: p.default for name, p in shown.items() if name not in own} == expected
    documented(call)


def documented(call: Callable[..., Any]) -> None:
    """Each parameter is, itself or with others that are as in another call."""
    described = re.findall(r"^(\w+(?:, \w+)*)(?: : .*)?\n    ", inspect.getdoc(call) or "", re.MULTILINE)
    names = [name for line in described for name in line.split(", ")]
    missing = [name for name in inspect.signature(call).parameters if name not in names]
    assert not missing or f"so is `{missing[0]}`." in (call.__doc__ or ""), missing
    assert len(missing) < 2, missing


@pytest.mark.parametrize("call", [tfr.read_tfrecord, tfr.read_table, tfr.read_arrays, tfr.infer_schema])
@pytest.mark.parametrize("name", ["batch_bytes", "batch_size", "chunksize"])
def test_keywords_of_streams_are_refused_where_all_records_are_read(
    path: Path, call: Callable[..., Any], name: str
) -> None:
    with pytest.raises(
        TypeError, match=rf"{call.__name__}\(\) got an .* '{name}': .*tfr\.(open_reader|dataset).*; valid names: "
    ):
        call(path, **{name: 1})


@pytest.mark.parametrize("name", ["batch_size", "seed"])
def test_a_library_that_batches_by_itself_is_not_told_to_the_dataset(path: Path, name: str) -> None:
    with pytest.raises(TypeError, match=rf"'{name}': its streams shuffle, batch, .*; to_torch, to_tf and iter_arrays"):
        tfr.dataset(path).to_hf(**{name: 1})


@pytest.mark.parametrize("keywords", [{"sample": "all"}, {"sample": 1}, {"on_new": "ignore"}], ids=str)
def test_keywords_of_the_sample_are_valid_where_all_records_are_sampled(path: Path, keywords: dict[str, Any]) -> None:
    assert read_by(tfr.read_table, path, **keywords) == tfr.read_table(path)
    assert read_by(tfr.infer_schema, path, **keywords) == tfr.infer_schema(path)


def test_what_is_not_there_is_not_mentioned(path: Path) -> None:
    for call in [*READING, tfr.read_arrays, tfr.iter_arrays, tfr.open_random]:
        assert "not implemented" not in (call.__doc__ or "").lower()
    names = ", ".join(map(repr, OnDamage.names(OnDamage.needs_no_report)))
    for value in ("ignore", "leave"):
        with pytest.raises(ValueError, match=f"expected one of {names} or a function"):
            tfr.read_table(path, on_error=value)


@pytest.mark.parametrize("call", [tfr.open_random, tfr.infer_schema])
@pytest.mark.parametrize("name", ["filters", "where"])
def test_calls_without_filters_say_where_they_are(path: Path, call: Callable[..., Any], name: str) -> None:
    with pytest.raises(TypeError, match=rf"{call.__name__}\(\) got an unexpected .* '{name}': tfr.dataset"):
        call(path, **{name: []})


@pytest.mark.parametrize("name", ["filter", "where", "predicate"])
def test_other_names_of_filters_are_known(path: Path, name: str) -> None:
    with pytest.raises(TypeError, match=r"did you mean filters=\?"):
        tfr.read_table(path, **{name: []})


def test_infer_schema_takes_no_schema(path: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'schema'; valid names: "):
        tfr.infer_schema(path, schema={"x": "int32"})


@pytest.mark.parametrize(
    ("call", "given", "meant"),
    [
        (tfr.read_table, "nrows", "limit"),
        (tfr.read_tfrecord, "usecols", "columns"),
        (tfr.read_tfrecord, "dtype_backnd", "dtype_backend"),
        (tfr.open_reader, "chunksize", "batch_size"),
        (tfr.read_table, "Limit", "limit"),
        (tfr.read_arrays, "raged", "ragged"),
        (tfr.infer_schema, "skiprows", "offset"),
        (tfr.open_random, "use_threads", None),
        (tfr.iter_arrays, "drop_remainder", "drop_last"),
        (tfr.read_table, "drop_remainder", None),
        (tfr.write_tfrecord, "num_shards", "shards"),
        (tfr.write_tfrecord, "nrows", None),
        (tfr.open_writer, "compresion", "compression"),
        (tfr.describe, "xyzzy", None),
        (tfr.iter_arrays, "rank", "worker"),
        (tfr.count, "indx", "index"),
        (tfr.verify, "progres", "progress"),
        (tfr.read_metadata, "fs", "storage_options"),
        (tfr.write_tfrecord, "fs", "filesystem"),
        (tfr.formats.open_npy, "filesystem", "storage_options"),
        (tfr.RecordReader, "compression_type", "compression"),
        (tfr.RecordWriter, "exist_ok", "mode='overwrite' or 'error'"),
        (tfr.formats.open_npy, "xyzzy", None),
        (tfr.formats.open_npz, "fs", "storage_options"),
        (tfr.formats.open_idx, "fs", "storage_options"),
        (tfr.io.parse_example, "xyzzy", None),
        (tfr.scalar, "defualt", "default"),
        (tfr.list_, "defualt", "default"),
        (tfr.sequence, "featur", "feature"),
        (tfr.tensor, "encodng", "encoding"),
        (tfr.image, "resise", "resize"),
        (tfr.convert, "overwrite", "mode='overwrite' or 'error'"),
        (tfr.convert, "nrows", "limit"),
        (tfr.formats.write_npy, "nrows", "limit"),
        (tfr.formats.write_npz, "compresed", "compressed"),
    ],
)
def test_an_unknown_keyword_suggests_the_one_that_is_meant(
    path: Path, call: Callable[..., Any], given: str, meant: str | None
) -> None:
    two = (tfr.write_tfrecord, tfr.convert, tfr.formats.write_npy, tfr.formats.write_npz)
    first = ({"x": [1]}, path.with_name("out")) if call in two else (path,)
    batches = {"batch_size": 1} if call is tfr.iter_arrays else {}
    with pytest.raises(TypeError) as caught:
        call(*first, **batches, **{given: 1})
    start, _, listed = str(caught.value).partition(" valid names: ")
    unexpected = f"{call.__name__}() got an unexpected keyword argument '{given}'"
    hint = f": did you mean {meant if '=' in str(meant) else f'{meant}='}?" if meant else ";"
    parameters = list(inspect.signature(call).parameters.values())
    if meant in OF_DATASET and meant not in {p.name for p in parameters}:
        shown = f"tfr.{'formats.' if call in two else ''}{call.__name__}(tfr.dataset(source, {meant}=…), …)"
        assert start == f"{unexpected}: pass {meant}= to dataset(): {shown}"
        return
    assert start == f"{unexpected}{hint}"
    shown = {p.name for p in parameters if p.default is not p.empty or p.kind is p.KEYWORD_ONLY} or {
        p.name for p in parameters
    }
    assert listed.split(", ") == sorted(shown)


def test_other_names_of_keywords_are_no_keywords() -> None:
    names = {f.name for cls in (ReadOptions, IterOptions, WriteOptions, ArrayOptions) for f in fields(cls)}
    of_calls = {"dtype_backend", "delimiter", "fraction", "fractions"}  # keywords of one call, or one format
    of_calls |= {"key", "length", "stop", "update", "verify", "weights"}
    of_calls |= {"overwrite_where", "source", *(f.name for f in fields(tfr.Limits))}
    for other in (name[:-1] for name in OTHER_NAMES if name.endswith("=")):
        assert set(OTHER_NAMES.meant_keywords(other)) <= names | of_calls, other
        assert other not in names - {"filesystem"}, other


def test_options_are_immutable() -> None:
    options = ReadOptions()
    with pytest.raises(AttributeError):
        options.limit = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        ReadOptions(["x"])  # type: ignore[misc]


def test_defaults_are_documented() -> None:
    assert ReadOptions().thread_count >= 1
    pages: dict[Any, Any] = {tfr.dataset: ReadOptions, tfr.open_reader: ReadOptions, tfr.Limits: tfr.Limits}
    pages |= {tfr.read_tfrecord: ReadOptions, tfr.salvage: SalvageOptions}
    stated = list[str]()
    for call, options in pages.items():
        shown = inspect.signature(call).parameters
        for name, text in re.findall(r"^ *(\w+) : .*, default ([\w, ]+)$", call.__doc__ or "", re.MULTILINE):
            value = literal_eval(text.replace(",", "").removesuffix(" MiB")) * (MIB if "MiB" in text else 1)
            assert value == getattr(options(), name, shown[name].default), name
            assert shown[name].default in (UNSET, value), name
            stated += [name]
    for call in (tfr.dataset, tfr.open_reader, tfr.read_tfrecord, tfr.salvage):
        unset = {p.name for p in inspect.signature(call).parameters.values() if p.default is UNSET}
        lacking = unset - {*stated, "compression", "on_new", "limits"}
        assert not lacking, f"the docstring of {call.__name__} does not end the line of {lacking} with ', default …'"
    for name in ("compression", "on_new"):  # the first of their values
        assert f'{name} : {{"{getattr(ReadOptions, name)}"' in (tfr.dataset.__doc__ or "")


def _wrong_values(kind: str) -> list[Any]:
    """Values of types that no such keyword accepts."""
    if kind == "flag":
        return ["no", 2.5, [True], {}, b"", object()]
    return ["raw", 5, ["a"], True, object(), {1: "raw"}]


# Flags that another keyword belongs to, or that may be more than a flag.
NO_FLAGS = {"write_index", "cut", "cu_seqlens", "evolve"}


def type_error(kind: Any, name: str, value: Any) -> str:
    try:
        kind.from_keywords({name: value})
    except TypeError as error:
        return str(error)
    return f"{kind.__name__} takes {name}={value!r}: call _check_flags in its __post_init__"


@pytest.mark.parametrize("kind", [DatasetOptions, WriteOptions, IterOptions], ids=lambda kind: kind.__name__)
def test_a_value_of_a_wrong_type_is_refused_with_the_name_of_its_keyword(kind: Any) -> None:
    """A flag is checked by `_check_flags`, and a mapping by `_check_mapping`, in ``__post_init__``."""
    names = {f.name: str(f.type) for f in fields(kind) if f.name not in kind.internal}
    flags = [name for name in names if isinstance(getattr(kind, name), bool) and name not in NO_FLAGS]
    for name in flags:
        for value in _wrong_values("flag"):
            assert type_error(kind, name, value).startswith(f"{name}=")
        assert getattr(kind.from_keywords({name: np.bool_(True)}), name) is True
    for name in (
        name for name, type_ in names.items() if re.fullmatch(r"(Mapping\[str, \w+\]|StorageLike) \| None", type_)
    ):
        for value in _wrong_values("mapping"):
            with pytest.raises(TypeError, match=f"^{name}.*(such as|names of columns)|^{name} has the key 1.*as in"):
                kind.from_keywords({name: value})


@pytest.mark.parametrize("columns", [b"x", [1], [b"x"], 5])
def test_columns_are_names(columns: Any) -> None:
    with pytest.raises(TypeError, match="expected names"):
        ReadOptions.from_keywords({"columns": columns})


def test_one_encoding_for_all_columns_raises_with_an_example() -> None:
    with pytest.raises(TypeError, match=r"column_encoding='raw': expected a dict such as \{'x': 'raw'\}, by column"):
        WriteOptions.from_keywords({"column_encoding": "raw"})


def test_the_limits_in_the_security_policy_exist() -> None:
    text = (Path(__file__).parents[3] / "SECURITY.md").read_text(encoding="utf-8")
    limits = set(re.findall(r"`Limits\.(\w+)`", text))
    assert limits == {f.name for f in fields(tfr.Limits)}
    assert ReadOptions().limits == tfr.Limits()
    assert tfr.Limits().features == 100_000
    assert tfr.Limits().expansion_bytes == 256 << 20
    assert tfr.Limits().decompression_ratio is None
    assert f"| manifest | {MOST_MANIFEST_BYTES >> 20} MiB |" in text


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "keywords",
    [
        {
            "ragged": "pad",
            "batch_size": np.uint8(250),
            "shuffle_buffer": np.uint8(200),
            "seed": np.uint8(3),
            "epochs": np.int8(127),
        },
        {"batch_size": np.uint8(7), "bucket_by": "x", "bucket_sizes": np.array([150, 250], np.uint8)},
        {"batch_size": np.array(7), "pack": {"x": np.uint8(250)}},
        {"batch_size": np.int8(7), "ragged": "pad", "pad_to": (np.uint8(200), "multiple")},
        {"batch_size": 7, "ragged": "pad", "max_length": {"x": (np.int8(100), "left")}, "worker": (np.int8(0), 1)},
    ],
)
def test_integers_of_numpy_mean_what_those_of_python_do(tmp_path: Path, keywords: dict[str, Any]) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(*range(200 + n))) for n in range(40)])

    def first(**keywords: Any) -> Any:
        return next(tfr.iter_arrays(path, **keywords))["x"].tolist()

    assert first(**keywords) == first(**_of_python(keywords))


def _of_python(value: Any) -> Any:
    """The same keywords with integers of Python."""
    if isinstance(value, dict):
        return {key: _of_python(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_of_python, value))
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


@pytest.mark.filterwarnings("error")
def test_small_integers_of_numpy_are_limits(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(300)])
    report = tfr.merge(path, tmp_path / "b/", max_shard_bytes=np.uint8(250))
    assert len(report.files) > 1
    assert len(tfr.dataset(path).pieces(np.uint8(3))) == 3
    rows = np.array(5)
    assert (len(tfr.dataset(path).head(rows)), int(rows)) == (5, 5)
    assert tfr.shuffle(path, tmp_path / "c.tfrecord", seed=np.array(3)).records == 300


def test_an_array_is_no_integer(path: Path) -> None:
    with pytest.raises(TypeError, match=re.escape("limit=array([3]): expected an integer")):
        tfr.read_table(path, limit=np.array([3]))
