"""Read libsvm (svmlight) text files as a stream of record batches: a label, and the indices and values of a sparse row.

A line is ``label [qid:number] index:value index:value … [# comment]``. Indices ascend; they count from 1 as in libsvm,
or from 0 where some file has an index 0. Files are read twice: first for the greatest index, which is the number of
features.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import IO, NoReturn

import numpy as np
import pyarrow as pa

from tfrecord_io.apps.file_formats.tables.table_files import SourceOptions, TableFiles, TableSource, open_text_file
from tfrecord_io.apps.file_formats.tables.untyped_columns import declared_types
from tfrecord_io.columns import SparseColumn, plain_array
from tfrecord_io.errors import DecodeError, SchemaError
from tfrecord_io.kit import FORMATS, Array, ProgressMeter, check_integer, printable
from tfrecord_io.store import Source

FEATURES = "features"  # the sparse column
_BLOCK_BYTES = 4 << 20
_LINE_BYTES = 256 << 20
_MOST_INDEX = 2**53  # of float64, as which all numbers are parsed at once
_NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)"
_LINE = re.compile(
    rb"[ \t]*(?P<label>%(n)s(?:,%(n)s)*(?=[ \t]|$)|(?=[0-9]+:)|$)?(?:[ \t]*qid:(?P<qid>-?[0-9]+)(?=[ \t]|$))?"
    rb"(?P<row>(?:[ \t]*(?<![^ \t])[0-9]+:%(n)s)*)[ \t]*" % {b"n": _NUMBER},
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Lines:
    """The rows of some lines."""

    labels: list[bytes]
    queries: list[int | None]
    numbers: Array  # int64: the line of each row, from 0 on
    counts: Array  # int64: the number of values of each row
    indices: Array  # int64, as in the file
    values: Array  # float64


@dataclass(frozen=True, slots=True)
class _Contents:
    """Facts of all files together."""

    zero_based: bool
    features: int
    has_queries: bool
    many_labels: bool  # some line has several labels, or none


def libsvm_source(
    paths: list[str], options: SourceOptions, zero_based: bool | None = None, n_features: int | None = None
) -> TableSource:
    """The rows of libsvm files, one file after the other; see the module.

    `zero_based` says whether indices count from 0, `n_features` how many there are, of which each file may have fewer.
    """
    files = TableFiles.resolve(paths, (FORMATS.libsvm,), options)
    check_integer("n_features", n_features, 1, optional=True)
    contents = _contents(files.sources, zero_based, n_features)
    index_type = pa.int32() if contents.features <= 2**31 else pa.int64()
    sparse = SparseColumn.from_matrix(FEATURES, contents.features)
    label = pa.list_(pa.float64()) if contents.many_labels else pa.float64()
    fields = [pa.field("label", label), *([pa.field("qid", pa.int64())] if contents.has_queries else [])]
    fields.append(pa.field(sparse.index[0], pa.list_(index_type)))
    fields.append(pa.field(f"{FEATURES}/values", pa.list_(pa.float64()), metadata=sparse.metadata))
    parsed = pa.schema(fields)
    schema = declared_types(parsed, files.options, _is_number_or_list)
    files.select_names(schema.names)

    def batches(source: Source, meter: ProgressMeter) -> Generator[pa.RecordBatch]:
        with closing(open_text_file(source, meter)) as file:
            for lines in _parse_lines(file, source.path):
                batch = _batch(lines, contents, parsed, source.path)
                yield batch if schema.equals(parsed) else batch.cast(schema)

    return TableSource(files, schema, batches)


def _is_number_or_list(type_: pa.DataType) -> bool:
    value = type_.value_type if pa.types.is_list(type_) else type_
    return pa.types.is_integer(value) or pa.types.is_floating(value)


def _contents(sources: list[Source], zero_based: bool | None, n_features: int | None) -> _Contents:
    min_index, max_index, has_queries, many_labels = 1, -1, False, False
    for source in sources:
        with closing(open_text_file(source)) as file:
            for lines in _parse_lines(file, source.path):
                min_index = min(min_index, int(lines.indices.min(initial=min_index)))
                max_index = max(max_index, int(lines.indices.max(initial=max_index)))
                has_queries = has_queries or any(query is not None for query in lines.queries)
                many_labels = many_labels or any(b"," in label or not label for label in lines.labels)
    if zero_based is False and min_index == 0:
        path = printable(sources[0].path)
        raise SchemaError("zero_based=False: the files have an index 0", path=path)
    from_zero = min_index == 0 if zero_based is None else zero_based
    feature_count = max(max_index + (1 if from_zero else 0), 1)
    if n_features is not None and feature_count > n_features:
        reason = f"the files have {feature_count} features, more than n_features={n_features!r}"
        raise SchemaError(reason, path=sources[0].path, expected=n_features, got=feature_count)
    return _Contents(from_zero, n_features or feature_count, has_queries, many_labels)


def _parse_lines(file: IO[bytes], path: str) -> Iterator[_Lines]:
    """The rows of a file, some megabytes at a time; empty lines and comments are left out."""
    number = 0
    while lines := file.readlines(_BLOCK_BYTES):
        if len(lines[-1]) > _LINE_BYTES:
            _refuse(path, number + len(lines) - 1, f"it has more than {_LINE_BYTES} bytes")
        yield _rows(lines, number, path)
        number += len(lines)


def _rows(lines: list[bytes], first: int, path: str) -> _Lines:
    labels: list[bytes] = []
    queries: list[int | None] = []
    numbers: list[int] = []
    parts: list[bytes] = []
    for number, line in enumerate(lines, first):
        text = line.partition(b"#")[0].rstrip()
        if number == 0:
            text = text.removeprefix(b"\xef\xbb\xbf")
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            _refuse_line(path, number, text)
        labels.append(match["label"] or b"")
        queries.append(None if match["qid"] is None else int(match["qid"]))
        numbers.append(number)
        parts.append(match["row"])
    counts = np.fromiter((part.count(b":") for part in parts), np.int64, len(parts))
    pairs = _floats(b" ".join(parts).replace(b":", b" ")).reshape(-1, 2)
    indices = pairs[:, 0]
    rows = np.array(numbers, np.int64)
    if np.any(bad := indices >= _MOST_INDEX):
        at = int(np.repeat(rows, counts)[bad.argmax()])
        _refuse(path, at, f"an index is {_MOST_INDEX} or more")
    whole = indices.astype(np.int64)
    ends = _offsets(counts)
    falls = np.zeros(len(whole), bool)
    falls[1:] = whole[1:] <= whole[:-1]
    falls[ends[:-1][counts > 0]] = False  # the first of each row
    if falls.any():
        at = int(falls.argmax())
        _refuse(
            path,
            int(np.repeat(rows, counts)[at]),
            f"the index {whole[at]} follows {whole[at - 1]}",
            "ascending indices",
        )
    return _Lines(labels, queries, numbers=rows, counts=counts, indices=whole, values=np.ascontiguousarray(pairs[:, 1]))


def _batch(lines: _Lines, contents: _Contents, schema: pa.Schema, path: str) -> pa.RecordBatch:
    columns = [_labels(lines, contents, path)]
    if contents.has_queries:
        if None in lines.queries:
            at = int(lines.numbers[lines.queries.index(None)])
            _refuse(path, at, "it has no qid:, which other lines have", "label qid:number index:value …")
        columns.append(plain_array(np.array(lines.queries, np.int64)))
    indices = lines.indices - (0 if contents.zero_based else 1)
    for field, values in zip(list(schema)[-2:], (indices, lines.values), strict=True):
        items = plain_array(values.astype(field.type.value_type.to_pandas_dtype(), copy=False))
        columns.append(pa.ListArray.from_arrays(pa.array(_offsets(lines.counts), pa.int32()), items, type=field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _labels(lines: _Lines, contents: _Contents, path: str) -> pa.Array:
    if not contents.many_labels:
        return plain_array(_floats(b" ".join(lines.labels)))
    counts = np.array([label.count(b",") + 1 if label else 0 for label in lines.labels], np.int64)
    values = plain_array(_floats(b" ".join(lines.labels).replace(b",", b" ")))
    return pa.ListArray.from_arrays(pa.array(_offsets(counts), pa.int32()), values)


def _offsets(counts: Array) -> Array:
    """The begin of each run of these lengths, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(counts)])


def _floats(text: bytes) -> Array:
    """The numbers of a text, which are valid."""
    return np.fromstring(text, np.float64, sep=" ") if text.strip() else np.zeros(0)


def _refuse_line(path: str, number: int, text: bytes) -> NoReturn:
    """Raise DecodeError that names the part of a line that is not valid."""
    label, *tokens = text.split()
    if tokens and re.fullmatch(rb"qid:-?[0-9]+", tokens[0]):
        del tokens[0]
    pair = re.compile(rb"[0-9]+:%b" % _NUMBER, re.IGNORECASE)
    bad = next((token for token in tokens if not pair.fullmatch(token)), label)
    shown = printable(repr(bad.decode("utf-8", "replace")), 60)
    _refuse(path, number, f"{shown} is not expected here", "label [qid:number] index:value …")


def _refuse(path: str, number: int, reason: str, expected: str | None = None) -> NoReturn:
    raise DecodeError(f"line {number + 1}: {reason}", path=path, expected=expected, hint=None)
