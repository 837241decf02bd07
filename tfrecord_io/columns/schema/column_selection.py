"""Select columns by name, glob and ``!name``, where a literal name wins over a pattern; and declare their types.

A `Projection` takes names and returns the selected names in order; `Overrides` are applied to a schema.

Tests: tests/read/test_reader_schema.py and tests/columns/schema/test_field_makers.py.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import pyarrow as pa

from tfrecord_io.base import ScanOptions, did_you_mean, printable
from tfrecord_io.columns.schema.column_features import (
    COMPOSITE_KEY,
    LIST,
    NULL_POSITIONS,
    Leaf,
    column_leaves,
    shape_entries,
)
from tfrecord_io.columns.schema.field import CONTEXT, Field, default_part
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.tensor_types import NESTED, is_composed
from tfrecord_io.columns.schema.types import UnsupportedType, types_within, value_type
from tfrecord_io.errors import FeatureNotFoundError, SchemaError

_GLOB = frozenset("*?[")
_MARK = "[!]"  # for a "!" at the begin of a name


class Projection:
    """The ``columns=`` of a call: None for all, or entries that include columns, or exclude them after a ``!``.

    An entry is a name or a glob (``*``, ``?``, ``[…]``). Only ``!…`` entries: all but those. The columns ``*`` and
    ``!a`` are ``[*]`` and ``[!]a``.
    >>> projection = Projection(["*", "!image"])
    >>> [projection("label"), projection("image")]
    [True, False]
    """

    @staticmethod
    def is_glob(entry: str) -> bool:
        """True if an entry is a pattern."""
        return is_glob(entry)

    @staticmethod
    def entry_takes(entry: str, name: str) -> bool:
        """True if an entry is the name, or a pattern of it."""
        return matches_any(entry, (name,))

    @staticmethod
    def entries(columns: Sequence[str] | str) -> Sequence[str]:
        """The entries of ``columns=``, which may be a single one."""
        return entries_of(columns)

    def __init__(self, columns: Sequence[str] | str | None) -> None:
        entries = None if columns is None else entries_of(columns)
        if entries is not None and not all(isinstance(entry, str) for entry in entries):
            raise TypeError(f"columns={columns!r}: expected names, globs and !names")
        self.takes_all = entries is None
        self._entries = list(entries or ())
        self._included, self._excluded = set[str](), set[str]()
        for entry in self._entries:
            (self._excluded if entry.startswith("!") else self._included).add(entry.removeprefix("!"))
        self._included_patterns = list(map(_pattern, filter(is_glob, self._included)))
        self._excluded_patterns = list(map(_pattern, filter(is_glob, self._excluded)))
        self._only_excludes = bool(self._excluded) and not self._included

    def __call__(self, name: str) -> bool:
        """True if the column is selected."""
        if self.takes_all or name in self._excluded or name in self._included:
            return name not in self._excluded
        if self._excluded_patterns and _fits(self._excluded_patterns, name):
            return False
        return self._only_excludes or (bool(self._included_patterns) and _fits(self._included_patterns, name))

    @property
    def filter(self) -> Projection | None:
        """Itself, or None if it takes all columns."""
        return None if self.takes_all else self

    def leaves_out(self, name: str) -> bool:
        """True if an entry with ``!`` excludes the column.

        >>> Projection(["a", "!b*"]).leaves_out("bc"), Projection(["a"]).leaves_out("bc")
        (True, False)
        """
        is_excluded = name in self._excluded or _fits(self._excluded_patterns, name)
        return is_excluded and not self(name)

    def check(self, names: Iterable[str], keyword: str = "columns") -> None:
        """Raise FeatureNotFoundError, which lists the names, where an entry of a keyword matches none of `names`."""
        if not self._entries:
            return
        available = set(names)
        for entry in self._entries:
            bare = entry.removeprefix("!")
            if not matches_any(bare, available):
                error = _no_match(keyword, entry, "feature", available, feature=bare)
                if entry in available:
                    error.set_hint(f"'[!]{bare}' is the column '{entry}', and '!{bare}' all columns but '{bare}'")
                raise error

    def order(self, names: Sequence[str]) -> list[str]:
        """The selected ones of `names`; in the order of the entries where these are names only."""
        return list(map(names.__getitem__, self.positions(names)))

    def positions(self, names: Sequence[str]) -> list[int]:
        """The indices of the selected ones of `names`, in the order of `order`."""
        selected = list(range(len(names)) if self.takes_all else compress(range(len(names)), map(self, names)))
        if self.takes_all or self._included_patterns or self._only_excludes:
            return selected
        position = dict(zip(self._entries, range(len(self._entries)), strict=True))
        return sorted(selected, key=lambda i: position.get(names[i], len(position)))


def entries_of(columns: Sequence[str] | str) -> Sequence[str]:
    """The entries of ``columns=``."""
    return [columns] if isinstance(columns, str) else columns


class NamePattern:
    """An entry of ``columns=``, or a key of ``schema_overrides=``: a name, or a glob.

    >>> NamePattern("box/*").matches("box/x"), NamePattern("box/*").is_glob, NamePattern("box").is_glob
    (True, True, False)
    """

    def __init__(self, entry: str) -> None:
        self.entry = entry

    @property
    def is_glob(self) -> bool:
        """True if the entry is a pattern."""
        return is_glob(self.entry)

    def matches(self, name: str) -> bool:
        """True if the whole name fits the pattern."""
        return matches(self.entry, name)

    def matches_any(self, names: Collection[str]) -> bool:
        """True if the entry is among the names, or is a glob that matches any of them."""
        return matches_any(self.entry, names)


def is_glob(entry: str) -> bool:
    """True if an entry is a pattern."""
    return not _GLOB.isdisjoint(entry)


def matches(glob: str, name: str) -> bool:
    """True if the whole name fits the pattern."""
    return _pattern(glob).match(name) is not None


def _fits(patterns: Iterable[re.Pattern[str]], name: str) -> bool:
    return any(pattern.match(name) for pattern in patterns)


def _pattern(glob: str) -> re.Pattern[str]:
    if glob.startswith(_MARK) and "]" not in glob[len(_MARK) :]:  # else it is a set of characters
        return re.compile("!" + fnmatch.translate(glob[len(_MARK) :]))
    return re.compile(fnmatch.translate(glob))


def matches_any(entry: str, names: Collection[str]) -> bool:
    """True if an entry is among the names, or is a glob that matches any of them."""
    return entry in names or (is_glob(entry) and any(matches(entry, name) for name in names))


def _no_match(keyword: str, entry: str, noun: str, names: Iterable[str], feature: str) -> FeatureNotFoundError:
    reason, hint = f"'{entry}' matches no {noun}", did_you_mean(feature, names, lists_names=True)
    if keyword == "schema_overrides":
        reason += ", and a type is declared for it"
    error = FeatureNotFoundError(reason, feature=feature, hint=hint)
    if keyword == "write_index":
        error.set_hint(*(f"{way} names it; {hint}" for way in ("write_index=", "--index-columns")))
    return error


class Overrides:
    """The ``schema_overrides=`` of a call: types of columns, by names and globs.

    A literal name wins over a glob; of several globs that match, the first in the mapping wins.

    >>> Overrides({"box/*": "list<float>"}).names("box/x")
    True
    """

    def __init__(self, by_key: Mapping[str, Any] | None) -> None:
        self._by_key = by_key or {}
        self._globs = {key: _pattern(key) for key in filter(is_glob, self._by_key)}

    def names(self, column: str) -> bool:
        """True if a key names a column, or matches its name."""
        return column in self._by_key or (bool(self._globs) and _fits(self._globs.values(), column))

    def apply(self, inferred: Schema | pa.Schema, *, of_records: bool = False) -> Schema:
        """Replace columns of an inferred schema; names and order stay.

        Values are fields, types and type names. FeatureNotFoundError if a key matches no column, SchemaError or
        TypeError if a value is not a type; if the schema is that `of_records`, SchemaError where no feature of a stored
        column would be read.

        >>> inferred = pa.schema({"box/x": pa.float32(), "box/y": pa.float32(), "id": pa.int64()})
        >>> Overrides({"box/*": "list<float>", "id": "int32"}).apply(inferred)
        Schema of 3 columns
          box/x  list<item: float>
          box/y  list<item: float>
          id     int32
        """
        from tfrecord_io.columns.schema.field_makers import as_field

        schema = Schema.parse(inferred)
        names = {*schema.names}
        for key in self._by_key:
            if not matches_any(key, names):
                raise _no_match("schema_overrides", key, "column", schema.names, feature=key)
        fields = []
        for f in schema:
            fitting = (glob for glob, pattern in self._globs.items() if pattern.match(f.column))
            match = f.column if f.column in self._by_key else next(fitting, None)
            if match is None:
                fields.append(f)
                continue
            field = as_field(f.column, self._by_key[match])
            fields.append(field if field.feature != f.column else replace(field, feature=f.feature))
        declared = as_stored(Schema(fields, schema.metadata), schema)
        if of_records:
            refuse_other_features(declared, schema)
        return declared


def refuse_other_features(declared: Schema, stored: Schema) -> None:
    """Raise SchemaError where no feature of a stored column is read, as its declared type has others.

    A column of that type would be null throughout.
    """
    changed = {f.column for f in (*declared.others.values(), *stored.others.values())}
    for f in (declared[name] for name in declared.names if name in changed):
        before = stored[f.column]
        if (before.is_common and f.is_common) or f.feature != before.feature or pa.types.is_null(before.type):
            continue
        read_features, stored_features = _features(f), _features(before)
        if read_features and stored_features and read_features.isdisjoint(stored_features):
            names = ", ".join(f"'{printable(name)}'" for name in sorted(read_features)[:3])
            reason = f"it is stored as {before.type_name}, and {f.type_name} is read from other features: {names}"
            advice = f"declare {before.type_name}"
            raise SchemaError(reason, feature=f.feature, expected=f.type_name, got=before.type_name, hint=advice)


def as_stored(declared: Schema, stored: Schema, selects: Callable[[str], bool] = lambda _: True) -> Schema:
    """The declared schema, with the selected columns read from as many features as they are stored as.

    A type does not say that a column of `stored`, an embedded schema, has several features; that of lists with nulls
    is also that of a plain list. A column whose features are declared as columns of their own is read from one.
    SchemaError if a column would be read without the positions of its nulls, or times in another unit.
    """
    forms = {f.feature: f for f in stored.others.values() if is_composed(f.encoding)}
    if forms:
        claimed = {f.feature for f in declared.fields}
        fields = [
            _as_stored(f, forms[f.feature], claimed) if f.feature in forms and selects(f.column) else f
            for f in declared.fields
        ]
        declared = Schema(fields, declared.metadata)
    _refuse_other_units(declared, stored, selects)
    return declared


def _as_stored(f: Field, stored: Field, claimed: set[str]) -> Field:
    features = _features(stored)
    if is_composed(f.encoding) or COMPOSITE_KEY in f.metadata or features & (claimed - {f.feature}):
        return f
    is_plain = f.encoding == LIST and f.part == default_part(f.type, LIST)
    if is_plain and f.type == stored.type:  # but for the encodings of its parts
        return replace(f, type=stored.type, encoding=stored.encoding, part=CONTEXT)
    if stored.encoding != NESTED:
        return f
    nested = replace(f, encoding=NESTED, part=CONTEXT) if is_plain else f
    read_features = _features(nested)
    if not read_features <= features:
        nested, read_features = f, _features(f)
    unread = (name for name in sorted(features - read_features) if name.endswith(NULL_POSITIONS))
    lost = next((name for name in unread if name.removesuffix(NULL_POSITIONS) in read_features), None)
    if lost is None:
        return nested
    reason = f"it is stored as {stored.type_name} with positions of nulls, which {f.type_name} cannot have"
    advice = f"declare {stored.type_name}, or declare the feature '{lost}' as a column, too"
    raise SchemaError(reason, feature=f.feature, expected=f.type_name, got=stored.type_name, hint=advice)


def _features(f: Field) -> set[str]:
    """The names of the features that a column is read from; none if it is in no Example."""
    return {leaf.feature for leaf in _leaves(f)}


def _leaves(f: Field) -> list[Leaf]:
    try:
        return column_leaves(replace(f, column=f.feature).to_arrow())
    except UnsupportedType:
        return []


def _refuse_other_units(declared: Schema, stored: Schema, selects: Callable[[str], bool]) -> None:
    """Raise SchemaError where the numbers of a column of times would be taken as those of another unit."""
    stored_types = dict(_times(stored))
    for feature, type_ in _times(Schema([f for f in declared.fields if selects(f.column)])) if stored_types else ():
        stored_type = stored_types.get(feature, type_)
        if _unit(type_) != _unit(stored_type):
            units = f"the numbers of {_unit(stored_type)} as {_unit(type_)}"
            reason = f"it is stored as {stored_type}, and {type_} would take {units}"
            advice = (
                f"declare {stored_type}, and cast what is read, or declare it in schema_overrides= beside "
                "schema='infer', if the embedded schema is wrong"
            )
            advice_cli = f"declare {stored_type}, and cast what is read"
            raise SchemaError(
                reason, feature=feature, expected=type_, got=stored_type, hint=advice, hint_cli=advice_cli
            )


def _times(schema: Schema) -> Iterator[tuple[str, pa.DataType]]:
    """The features whose numbers count units of time, with the type of one value."""
    for f in schema.others.values():
        if not f.is_common and any(map(pa.types.is_temporal, types_within(f.type))):
            for leaf in _leaves(f):
                if pa.types.is_temporal(type_ := value_type(leaf.type)):
                    yield leaf.feature, type_


def _unit(time: pa.DataType) -> str:
    """Unit of the numbers of a type of times: ``"s"`` to ``"ns"``, or ``"days"``."""
    if pa.types.is_date(time):
        return "days" if pa.types.is_date32(time) else "ms"
    return str(time.unit)


def states_shapes(declared: object) -> bool:
    """True if the declaration of a column (a field or a type) says that features state the shapes of its arrays."""
    if isinstance(declared, Field):
        return not declared.is_common and bool(shape_entries(declared.type, declared.metadata))
    return isinstance(declared, pa.DataType) and bool(shape_entries(declared, None))


def has_open_shapes(options: ScanOptions) -> bool:
    """True if a column is declared as an array whose shape is stored in other features, or by such a text."""
    is_declared = options.schema is not None and not (isinstance(options.schema, str) and options.schema == "infer")
    declared = Schema.parse(options.schema) if is_declared else None
    fields = () if declared is None else declared.others.values()
    overrides = (options.schema_overrides or {}).values()
    if any(map(states_shapes, (*fields, *overrides))):
        return True
    if not overrides:
        return False
    from tfrecord_io.columns.schema.field_makers import is_call

    return any(map(is_call, overrides))
