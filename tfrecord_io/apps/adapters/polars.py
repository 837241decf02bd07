"""polars: a LazyFrame whose queries decode only the columns and rows that they need."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from operator import eq
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError
from tfrecord_io.kit import (
    Column,
    Condition,
    LateTypes,
    LiveScan,
    Operator,
    Scan,
    check_keywords,
    condition_of,
    empty_batch,
    needs,
)
from tfrecord_io.typing import FilesLike, OpenedDataset, StorageLike

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LateTypes("polars")


@check_keywords
def scan_polars(source: FilesLike, *, storage_options: StorageLike | None = None) -> pl.LazyFrame:
    """Scan TFRecord files with polars: queries read only the columns and rows that they need.

    >>> import polars as pl, tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"label": [3, 1, 3], "name": ["a", "b", "c"]}, "letters.tfrecord"
    ... )
    >>> threes = tfr.scan_polars("letters.tfrecord").filter(pl.col("label") == 3)
    >>> threes.select("name").collect()["name"].to_list()
    ['a', 'c']

    Parameters
    ----------
    source : str, PathLike, Dataset, or list of those
        As in `read_tfrecord`; a `dataset` has more reading options.
    storage_options : dict or filesystem, optional
        Options for fsspec, as in pandas; or the filesystem of all paths, of fsspec or pyarrow.

    Returns
    -------
    polars.LazyFrame
        With the schema of `tfrecord_io.dataset`. Each query looks up the files again: it has the rows that were added
        since, and goes on to work after `compact`; the columns stay those of the first look. Selected columns are
        decoded, those of filters too, and reading stops after the rows of ``head``. Files in directories such as
        ``label=3/`` are not opened, and records of files with a column index not read, if a filter excludes them.
        Errors of tfrecord_io keep their message, and with polars 2 their class.

    Raises
    ------
    MissingDependencyError
        polars is not installed.
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As in `tfrecord_io.dataset`.
    """
    scan = Scan.of(source, storage_options=storage_options)
    return _lazy_frame(scan, scan.live())


def to_polars(dataset: OpenedDataset) -> pl.LazyFrame:
    """A polars LazyFrame of this version of the files; see `tfrecord_io.scan_polars`, which looks them up again."""
    scan = Scan.of(dataset)
    return _lazy_frame(scan, scan)


def _lazy_frame(scan: Scan, read: Scan | LiveScan) -> pl.LazyFrame:
    with needs("polars"):
        import polars as pl
        from polars.io.plugins import register_io_source
    scan.check_columns()
    absent = [field.name for field in scan.schema if _is_absent(field)]
    present = [field for field in scan.schema if field.name not in absent]
    empty = empty_batch(pa.schema([field.with_type(_widen_decimals(field.type)) for field in present]))
    unknown = dict.fromkeys(absent, pl.Unknown())
    schema = pl.Schema(dict(pl.DataFrame(empty).schema) | unknown)  # in this order: pl.len() reads the first column
    return register_io_source(partial(_frames, read), schema=schema)


def _is_absent(field: pa.Field) -> bool:
    """True if polars has no such type, or panics at its values: a query that uses the column fails."""
    return Column(field).unknown_dtype is not None or any(
        t.is_interval(part)
        or t.is_union(part)
        or t.is_decimal256(part)
        or (t.is_decimal(part) and part.scale < 0)
        or (t.is_fixed_size_list(part) and not part.list_size)
        or (t.is_fixed_size_binary(part) and not part.byte_width)
        or (isinstance(part, pa.BaseExtensionType) and _widen_decimals(part.storage_type) != part.storage_type)
        or (t.is_timestamp(part) and part.tz is not None and not _has_zone(part.tz))
        for part in Column(field).walk(storage=True)
    )


def _widen_decimals(type_: pa.DataType) -> pa.DataType:
    """Replace decimals of 32 and 64 bits in a type: polars reads all decimals as if they had 128."""
    if t.is_decimal32(type_) or t.is_decimal64(type_):
        return pa.decimal128(type_.precision, type_.scale)
    if t.is_dictionary(type_):
        return pa.dictionary(type_.index_type, _widen_decimals(type_.value_type), type_.ordered)
    return Column(type_).map_fields(lambda field: field.with_type(_widen_decimals(field.type)))


def _has_zone(name: str) -> bool:
    """True if polars knows a time zone; offsets such as +05:30 are unknown to it."""
    import polars as pl

    try:
        pl.Series(dtype=pl.Datetime("us", name))
    except pl.exceptions.PolarsError:
        return False
    return True


def _frames(
    read: Scan | LiveScan,
    columns: list[str] | None,
    predicate: pl.Expr | None,
    rows: int | None,
    batch_size: int | None,
) -> Iterator[pl.DataFrame]:
    """Read the frames of a scan: the rows among the first `rows` that fulfil the predicate, as polars expects."""
    import polars as pl

    scan = read.current() if isinstance(read, LiveScan) else read
    if columns is not None:
        scan = scan.only(columns)
    if (absent := next(filter(_is_absent, scan.schema), None)) is not None:
        type_name = Column(absent).type_name
        advice = "leave it out of the query"
        advice_cli = "leave it out of the query"
        if t.is_timestamp(absent.type):
            advice += ", or declare it in UTC by schema_overrides="
            advice_cli += ", or declare it in UTC by --type"
        reason = f"polars has no type for this column of {type_name}"
        raise SchemaError(reason, feature=absent.name, got=type_name, hint=advice, hint_cli=advice_cli)
    if predicate is not None and rows is None and scan.limit is None:
        condition = _translate_predicate(predicate, scan.schema)
        scan = scan if condition is None else scan.exclude(condition)
    if rows is not None:
        scan = scan.limit_rows(rows)
        size = max(1, min(scan.options.batch_size, batch_size or rows, rows))
        scan = scan.with_options(batch_size=size)
    with scan.open(whole=rows is None) as reader:
        wide = pa.schema([field.with_type(_widen_decimals(field.type)) for field in scan.schema])
        is_wide = wide.equals(scan.schema)
        for batch in reader:
            frame = pl.DataFrame(batch if is_wide else batch.cast(wide))
            yield frame if predicate is None else frame.filter(predicate)


# ---- conditions


class _Untranslated(Exception):
    """A condition that is left to polars."""


def _translate_predicate(predicate: pl.Expr, schema: pa.Schema) -> Condition | None:
    """Translate a predicate into a condition that excludes only rows which the predicate excludes, or None.

    Literals in the predicates that polars pushes down have the types of the columns.
    """
    import polars as pl

    if ".()" in str(predicate):  # a Python function, which serialize would pickle with all objects it refers to
        return None
    try:
        node = json.loads(predicate.meta.serialize(format="json"))
        return condition_of(_condition(node, schema), schema)
    except (_Untranslated, SchemaError, pl.exceptions.PolarsError, LookupError, TypeError, ValueError, RecursionError):
        return None  # also if another version of polars writes its expressions in another form


def _condition(node: Any, schema: pa.Schema) -> Condition:
    """Condition of a node of the expression's JSON: an object with one key, the kind of the node."""
    kind, content = _only(node)
    if kind == "Column" and content in schema.names and t.is_boolean(schema.field(content).type):
        return Condition("field", path=(content,))
    if kind == "Function":
        return _function(content, schema)
    if kind != "BinaryExpr":
        raise _Untranslated
    left, op, right = (content[key] for key in ("left", "op", "right"))
    if op == "And":
        return _either_or_both(left, right, schema)
    if op == "Or":
        return Condition.any_of([_condition(left, schema), _condition(right, schema)])
    operator = _operator(op)
    if _only(left)[0] == "Literal":
        left, right, mirror = right, left, operator.mirror()
        if mirror is None:
            raise _Untranslated
        operator = mirror
    return _operation(operator, [left, right], schema)


def _either_or_both(left: Any, right: Any, schema: pa.Schema) -> Condition:
    parts = []
    for side in (left, right):
        try:
            parts.append(_condition(side, schema))
        except _Untranslated:
            continue
    if not parts:
        raise _Untranslated
    return Condition.all_of(parts)


def _function(content: dict[str, Any], schema: pa.Schema) -> Condition:
    """Condition of a function: an operator, or a negated column (polars turns other negations into comparisons)."""
    inputs, function = content["input"], content["function"]
    if function == {"Boolean": "Not"} and _only(inputs[0])[0] == "Column":
        return Condition("call", "invert", arguments=(_condition(inputs[0], schema),))
    return _operation(_operator(function), inputs, schema)


def _operator(called: Any) -> Operator:
    """The operator that polars calls so."""
    operator = next((operator for operator in Operator.ALL if called in operator.polars), None)
    if operator is None:
        raise _Untranslated
    return operator


# The types of literals that pyarrow compares as polars does; NaN is treated apart.
_SCALARS: dict[str, Callable[[pa.DataType], bool]] = {
    **{f"Int{bits}": partial(eq, getattr(pa, f"int{bits}")()) for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": partial(eq, getattr(pa, f"uint{bits}")()) for bits in (8, 16, 32, 64)},
    "Float32": t.is_float32,
    "Float64": t.is_float64,
    "String": lambda type_: Column(type_).is_text,
    "Binary": lambda type_: Column(type_).is_bytes,
    "Boolean": t.is_boolean,
}


def _operation(operator: Operator, inputs: list[Any], schema: pa.Schema) -> Condition:
    """Condition of an operator, for a column and literals of its type.

    In polars, NaN is greater than all numbers and equals itself.
    """
    kind, name = _only(inputs[0])
    if kind != "Column" or name not in schema.names:
        raise _Untranslated
    literals = [_literal(node, schema.field(name).type) for node in inputs[1:]]
    if operator.mirrored != operator.symbol and any(t.is_boolean(literal.type) for literal in literals):
        raise _Untranslated
    operand = literals if operator.takes_pair else next(iter(literals), None)
    condition = condition_of([(name, operator.symbol, operand)])
    if not operator.finds_nan or not t.is_floating(schema.field(name).type):
        return condition
    return Condition.any_of([condition, Condition("call", "is_nan", arguments=condition.arguments[:1])])


def _literal(node: Any, type_: pa.DataType) -> pa.Scalar:
    kind, content = _only(node)
    if kind != "Literal":
        raise _Untranslated
    kind, content = _only(content)
    scalar, value = _only(content) if kind == "Scalar" else ("", None)
    if scalar not in _SCALARS or not _SCALARS[scalar](type_) or value is None:  # NaN and infinity are null in JSON
        raise _Untranslated
    return pa.scalar(bytes(value) if scalar == "Binary" else value, type_)


def _only(node: Any) -> tuple[str, Any]:
    """Kind and content of a node."""
    if not isinstance(node, dict) or len(node) != 1:
        raise _Untranslated
    (item,) = node.items()
    return item
