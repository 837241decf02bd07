"""Each row of the table of operators finds the rows that plain Python finds, on every way to a row."""

from __future__ import annotations

import ast
import datetime
import math
import operator
import pickle
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading_modes import matching_records_only
from rounds import rounds
from tfrecord_io.base.options.filters import condition_of
from tfrecord_io.base.options.operators import BY_SYMBOL, NAMES, Operand, Operator
from tfrecord_io.columns.arrow.type_literals import column_family
from tfrecord_io.read.row_filter import EVALUATED_HERE

US = datetime.timedelta(microseconds=1)
DAY = datetime.timedelta(days=1)
NOON = datetime.datetime(2026, 10, 24, 12)
# Of a value that is not missing; what a missing value gives is in `holds`.
MODEL: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, members: value in members,
    "not in": lambda value, members: value not in members,
    "contains": lambda values, member: member in values,
    "startswith": lambda value, prefix: value.startswith(prefix),
    "between": lambda value, bounds: bounds[0] <= value <= bounds[1],
    "is null": lambda value, _: False,
    "is not null": lambda value, _: True,
}


def single(value: float) -> float:
    return float(np.float32(value))


def numbers_near(values: list[Any], step: Any) -> list[Any]:
    return [near for value in values for near in (value, value - step, value + step)]


def floats_near(values: list[float], dtype: Any) -> list[float]:
    ends = [dtype(-math.inf), dtype(math.inf)]
    return [float(near) for value in values for near in (value, *(np.nextafter(dtype(value), end) for end in ends))]


def texts_near(values: list[str]) -> list[str]:
    beyond = [value[:-1] + chr(ord(value[-1]) + 1) for value in values if value and value[-1] not in "\ud7ff\U0010ffff"]
    return [*values, *(value[:-1] for value in values), *(value + "\x01" for value in values), *beyond]


INTS, SMALL, FLOATS = [-2, 0, 3, 2**53], [-128, -1, 0, 127], [0.1, 0.0, -0.0, 1.5, -3.0, math.inf]
TEXTS = ["", "c", "ca", "cat", "cb", "é", "z\ud7ff", "\U0010ffff", "\U0010ffffa"]
BYTES = [b"", b"c", b"ca", b"\xff", b"\xff\xff", b"a\xff", b"a\x7f", b"\x80", b"\xc3\xa9"]
DAYS = [datetime.date(2026, 10, 24), datetime.date(2026, 10, 26)]
TIMES = [NOON, NOON + 3 * US, NOON + DAY]
PRICES = [Decimal("0.10"), Decimal("0.25"), Decimal("-1.00")]
# The type of a column, its values, and the literals: the values and their neighbours.
COLUMNS: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "int64": (pa.int64(), INTS, [*numbers_near(INTS, 1), 0.5, 2.0**53]),
    "int8": (pa.int8(), SMALL, [*numbers_near(SMALL, 1), 126.5, 2**70]),
    "float32": (pa.float32(), [*map(single, FLOATS), math.nan], [*floats_near(FLOATS, np.float32), 0, 1]),
    "float64": (pa.float64(), [*FLOATS, math.nan], [*floats_near(FLOATS, np.float64), 0, 1]),
    "decimal": (pa.decimal128(5, 2), PRICES, [*numbers_near(PRICES, Decimal("0.001")), 0]),
    "decimal32": (pa.decimal32(5, 2), PRICES, [*numbers_near(PRICES, Decimal("0.001")), 0]),
    "decimal64": (pa.decimal64(5, 2), PRICES, [*numbers_near(PRICES, Decimal("0.001")), 0]),
    "bool": (pa.bool_(), [True, False], [True, False]),
    "text": (pa.string(), TEXTS, texts_near(TEXTS)),
    "categories": (pa.dictionary(pa.int8(), pa.string()), TEXTS, texts_near(TEXTS)),
    "bytes": (pa.binary(), BYTES, [*BYTES, b"\x7f", b"a", b"b", b"\xc3", b"\xff\xfe"]),
    "date": (pa.date32(), DAYS, numbers_near(DAYS, DAY)),
    "timestamp": (pa.timestamp("us"), TIMES, numbers_near(TIMES, US)),
    "list": (pa.list_(pa.int64()), [[], [1], [1, 2], [2**53]], [0, 1, 2, 2**53 - 1, 2**53]),
}
IN_FOLDERS = ("int64", "text", "date")  # of which partition columns are
CASES = [
    (symbol, name)
    for symbol, row in BY_SYMBOL.items()
    for name, (type_, *_) in COLUMNS.items()
    if column_family(type_.value_type if pa.types.is_dictionary(type_) else type_) in row.types.families
]


def holds(symbol: str, value: Any, operand: Any) -> bool:
    """A missing value is found by ``is null`` and ``not in`` alone."""
    return symbol in ("is null", "not in") if value is None else MODEL[symbol](value, operand)


def rounded(literal: Any, name: str) -> Any:
    return single(literal) if name == "float32" and isinstance(literal, float) else literal


def terms(symbol: str, operand: Any) -> list[Any]:
    return [("x", symbol)] if BY_SYMBOL[symbol].operand is Operand.NONE else [("x", symbol, operand)]


def operands(row: Any, literals: list[Any]) -> st.SearchStrategy[Any]:
    literal = st.sampled_from(literals)
    return {
        Operand.NONE: st.none(),
        Operand.VALUE: literal,
        Operand.TEXT: literal,
        Operand.LIST: st.lists(literal, min_size=1, max_size=3),
        Operand.PAIR: st.tuples(literal, literal),
    }[row.operand]


def test_every_row_has_a_model() -> None:
    assert set(MODEL) == {row.symbol for row in Operator.ALL}


@pytest.mark.parametrize("row", [row for row in Operator.ALL if row.comparisons is None], ids=lambda row: row.symbol)
def test_every_row_without_comparisons_has_a_function_that_is_called(row: Any) -> None:
    """One of pyarrow that takes the column and the value, if there is one; a list is an option of ``is_in``."""
    arguments = 1 if row.operand in (Operand.NONE, Operand.LIST) else 2
    called = row.function in pc.list_functions() and pc.get_function(row.function).arity == arguments
    assert called or row.function in EVALUATED_HERE, (
        f"pyarrow calls no function {row.function} of {arguments} arguments: state `comparisons`, or evaluate it in "
        "EVALUATED_HERE of read/row_filter.py"
    )


def test_names_of_operators_stand_in_their_table_alone() -> None:
    names = {row.symbol for row in Operator.ALL if row.symbol[0].isalpha()} - {"in"}
    names |= {name for row in Operator.ALL for name in row.polars if isinstance(name, str)}
    found = {}
    for path in sorted(Path(tfr.__file__).parent.rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        if texts & names and path.name != "operators.py":
            found[path.name] = texts & names
    here = {row.symbol for row in Operator.ALL if row.function in EVALUATED_HERE}
    assert found == {"row_filter.py": here}, "derive it from `Operator.ALL`"


@pytest.mark.parametrize("row", Operator.ALL, ids=lambda row: row.symbol)
def test_every_row_is_documented(row: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "filter-rows.md").read_text("utf-8")
    assert f"`{row.symbol}`" in page, "add the operator to docs/howto/filter-rows.md"
    assert f"``{row.symbol}``" in tfr.Dataset.filter.__doc__.replace('``("label", "is null")``', "``is null``")


@pytest.mark.parametrize(("symbol", "name"), CASES)
def test_rows_are_those_of_python(symbol: str, name: str) -> None:
    type_, values, literals = COLUMNS[name]
    row = BY_SYMBOL[symbol]

    @settings(max_examples=rounds(40, 3))
    @given(drawn=st.lists(st.sampled_from([*values, None]), min_size=1, max_size=9), operand=operands(row, literals))
    def law(drawn: list[Any], operand: Any) -> None:
        table = pa.table({"x": pa.array(drawn, type_, from_pandas=False), "id": range(len(drawn))})
        compared = [rounded(each, name) for each in operand] if isinstance(operand, list | tuple) else operand
        compared = rounded(compared, name)
        expected = [at for at, value in enumerate(drawn) if holds(row.symbol, value, compared)]
        first = sorted({0, *expected})
        condition = terms(symbol, operand)
        with tempfile.TemporaryDirectory() as folder, matching_records_only():
            plain, indexed, folders = (str(Path(folder, each)) for each in ("plain", "indexed", "folders"))
            for path in (plain, indexed):
                tfr.write_tfrecord(table, path, float64="raw")
            paths = [plain, indexed]
            if name != "list":
                tfr.build_index(indexed, columns=["x"])
            if name in IN_FOLDERS and "" not in drawn:
                tfr.write_tfrecord(table, f"{folders}/", partition_by=["x"])
                paths.append(folders)
            for path in paths:
                for filters, rows in ((condition, expected), ([condition, [("id", "==", 0)]], first)):
                    found = tfr.read_table(path, filters=filters, columns=["id"])["id"].to_pylist()
                    assert sorted(found) == rows, (path, filters)
                found = tfr.dataset(path).filter(condition).to_table()["id"].to_pylist()
                assert sorted(found) == expected, path
            for path in (plain, indexed):
                with tfr.open_random(path) as records:
                    assert records.select(condition).numbers.tolist() == expected, path

    law()


@pytest.mark.parametrize("row", [row for row in Operator.ALL if row.symbol != "contains"], ids=lambda row: row.symbol)
def test_an_index_answers_each_operator(tmp_path: Path, row: Any) -> None:
    """Only the records that it finds are read."""
    texts = [*(f"{number:02}" for number in range(50)), None]
    tfr.write_tfrecord({"x": texts, "id": range(51)}, tmp_path / "a.tfrecord")
    tfr.build_index(tmp_path / "a.tfrecord", columns=["x"])
    operand = {"!=": "03", "not in": ["03", "04"], "in": ["03"], "between": ["03", "05"], "startswith": "1"}
    expected = [at for at, text in enumerate(texts) if holds(row.symbol, text, operand.get(row.symbol, "25"))]
    with matching_records_only():
        condition = terms(row.symbol, operand.get(row.symbol, "25"))
        dataset = tfr.dataset(tmp_path / "a.tfrecord").filter(condition)
        (file,) = dataset.explain().files
        assert (file.read, file.why) == ("records", "column index")
        assert file.records is not None
        assert len(expected) <= file.records <= len(expected) + 1  # and the first, which has the schema
        assert dataset.to_table()["id"].to_pylist() == expected


@pytest.mark.parametrize("row", Operator.ALL, ids=lambda row: row.symbol)
@pytest.mark.parametrize("name", [*COLUMNS, "struct"])
def test_a_column_of_another_type_is_refused(tmp_path: Path, row: Any, name: str) -> None:
    type_, values, literals = COLUMNS.get(name, (pa.struct({"a": pa.int64()}), [{"a": 1}], [1]))
    family = column_family(type_.value_type if pa.types.is_dictionary(type_) else type_)
    if family in row.types.families:
        return
    tfr.write_tfrecord(pa.table({"x": pa.array(values, type_)}), tmp_path / "a.tfrecord", float64="raw")
    literal = {Operand.TEXT: "a", Operand.LIST: literals[:1], Operand.PAIR: literals[:1] * 2}
    operand = literal.get(row.operand, literals[0])
    with pytest.raises(tfr.errors.SchemaError) as caught:
        tfr.read_table(tmp_path / "a.tfrecord", filters=terms(row.symbol, operand))
    reason, hint = row.types.reason.partition("{}")[0], row.types.hint
    assert reason in str(caught.value)
    assert hint in str(caught.value)
    with pytest.raises(tfr.errors.SchemaError, match=hint):
        tfr.dataset(tmp_path / "a.tfrecord").filter(terms(row.symbol, operand))


@pytest.mark.parametrize(
    ("filters", "parts"),
    [
        ([("s", "startswith", "c'a")], ["s startswith 'c''a'"]),
        ([("n", "between", (1.5, 3))], ["n between 1.5 and 3"]),
        ([("day", "between", ["2026-01-01", DAYS[0]])], ["day between '2026-01-01' and DATE '2026-10-24'"]),
        ([("s", "is null"), ("n", "is not null", None)], ["s is null", "n is not null"]),
        ([[("s", "==", None)], [("n", ">", 1.5), ("n", "!=", None)]], ["s is null or n > 1.5 and n is not null"]),
        ([("n", "not in", [1, None]), ("tags", "contains", "a")], ["n not in [1, null]", "tags contains 'a'"]),
        (((pc.field("n") == 1) | (pc.field("n") >= 2)) & (pc.field("s") != "x"), ["n == 1 or n >= 2", "s != 'x'"]),
        ("(n = 1 or n >= 2) and (s != 'x')", ["n == 1 or n >= 2", "s != 'x'"]),
        ([("n", "in", range(100))], ["n in [0, 1, 2, 3, 4, 5, 6, 7, 8, …, 99]"]),
        ((pc.scalar(1) < pc.field("n")) & ~pc.field("t", "x"), ["n > 1", "not (t.x)"]),
    ],
)
def test_messages_have_the_words_of_the_caller(tmp_path: Path, filters: Any, parts: list[str]) -> None:
    day, tags = pa.array([DAYS[0]], pa.date32()), pa.array([["a"]], pa.list_(pa.string()))
    table = pa.table({"n": [1], "s": ["cat"], "day": day, "tags": tags, "t": [{"x": True}]})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord").filter(filters)
    assert [part.condition for part in dataset.explain().filters] == parts
    whole = " and ".join(f"({part})" if " or " in part and len(parts) > 1 else part for part in parts)
    assert condition_of(filters).text == whole
    assert repr(pickle.loads(pickle.dumps(dataset))).endswith(f"rows where {whole}>")


def test_folders_are_left_out_with_the_words_of_the_caller(tmp_path: Path) -> None:
    tfr.write_tfrecord({"s": ["cat", "cow", "dog"], "n": [1, 2, 3]}, tmp_path / "out/", partition_by="s")
    for filters, left_out in (
        ("s startswith 'c' and n = 1", {"dog": "s startswith 'c'"}),
        ("s between 'ca' and 'cb'", {"cow": "s between 'ca' and 'cb'", "dog": "s between 'ca' and 'cb'"}),
        ("s is null", dict.fromkeys(["cat", "cow", "dog"], "s is null")),
    ):
        files = tfr.dataset(tmp_path / "out/").filter(filters).explain().files
        named = {Path(file.path).parent.name.removeprefix("s="): file.why for file in files if file.read == "left out"}
        assert named == left_out


@pytest.mark.parametrize(
    ("term", "reason"),
    [
        (("x", "startswith", 1), "column 'x': startswith takes text or bytes, and got int"),
        (("x", "startswith", None), "None cannot be compared with 'startswith'"),
        (("x", "between", 1), "between takes two values, the least and the greatest, and got int"),
        (("x", "between", [1, 2, 3]), "between takes two values, .* and got 3"),
        (("x", "between", [1, None]), "None cannot be compared with 'between'"),
        (("x", "between", [1, object()]), "between takes two values, .* and got object"),
        (("x", "between"), "expected tuples"),
        (("x", "starts with", "a"), f"'starts with' is not an operator; use one of {NAMES}"),
    ],
)
def test_an_operand_of_another_form_is_refused(term: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        condition_of([term])
