"""Columns of Python objects that the kernel looks at in one pass become what the passes of Python make of them.

The reference engine leaves each cell to Python, so it says what is right: types, values, missing cells and errors.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rounds import rounds
from tfrecord_io.columns.arrow.input.from_arrays import Columns, plain_cells, table_of_arrays
from tfrecord_io.columns.arrow.input.from_pandas import table_of_frame
from tfrecord_io.errors import EncodeError

ENCODINGS: list[dict[str, str]] = [{}, {"x": "raw"}, {"x": "npy"}]
NUMBERS = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "q", "Q", "l")
OTHERS = (">i4", ">f8", "c8", "M8[ns]", "M8[D]", "M8[M]", "m8[us]", "S2", "U2", "g", "V2", [("a", "i4")])


class Subclass(np.ndarray):  # type: ignore[type-arg]
    """An array that is not exactly one."""


class Pair(NamedTuple):
    first: Any
    second: Any


class Numbers(list[Any]):
    """A list that is not exactly one."""


def objects(items: list[Any]) -> np.ndarray[Any, Any]:
    found = np.empty(len(items), object)
    for at, item in enumerate(items):
        found[at] = item
    return found


@st.composite
def vectors(draw: st.DrawFn, dtypes: Sequence[Any] = NUMBERS) -> np.ndarray[Any, Any]:
    """Of one axis: in C order, strided, reversed, not aligned, or read-only."""
    dtype, size = np.dtype(draw(st.sampled_from(dtypes))), draw(st.integers(0, 4))
    memory = np.arange(1, 1 + 3 * size * dtype.itemsize, dtype=np.uint8) % 2
    values = np.frombuffer(memory.tobytes() or b"", dtype)[: 3 * size]
    if dtype.kind == "f" and size and draw(st.booleans()):
        values = values.copy()
        values[::2] = np.nan
    step = draw(st.sampled_from((1, 2, -1)))
    values = values[::step][:size]
    if draw(st.booleans()) and size:
        moved = np.empty(values.nbytes + 1, np.uint8)[1:].view(dtype)
        moved[:] = values
        values = moved
    return values


FLOATS = st.sampled_from((0.5, float("nan"), -0.0))
INTS = st.sampled_from((0, 7, -(2**63), 2**63 - 1))
BYTES = st.sampled_from((b"", b"a", b"a\0b"))
ITEMS = st.one_of(FLOATS, INTS, BYTES, st.booleans(), st.none(), st.just("é"))
SEQUENCES: tuple[Callable[[list[Any]], Any], ...] = (list, tuple, objects, Numbers)


def sequences(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(items, max_size=3)
    return lists | lists.flatmap(lambda found: st.sampled_from(SEQUENCES).map(lambda make: make(found)))


def masked() -> st.SearchStrategy[Any]:
    masks = st.sampled_from(([True, True], [True, False], [False, False]))
    return masks.map(lambda mask: np.ma.masked_array([1, 2], mask)) | st.just(np.ma.masked)


UNIFORM = (
    *(vectors((dtype,)) for dtype in ("f4", "i8", "?", "f2")),
    BYTES,
    *(sequences(items) for items in (FLOATS, INTS, BYTES, st.booleans())),
)
RARE = st.one_of(
    vectors(),
    vectors(OTHERS),
    sequences(ITEMS),
    sequences(vectors() | masked() | sequences(ITEMS)),
    masked(),
    st.sampled_from(NUMBERS).map(lambda dtype: np.zeros((), dtype)),
    st.sampled_from(NUMBERS).map(lambda dtype: np.zeros((1, 2), dtype)),
    st.sampled_from((objects([1, 2]).reshape(1, 2), objects([objects([np.ma.masked])]), np.zeros(2).view(Subclass))),
    st.sampled_from((np.float32(1), np.float64("nan"), np.complex64(1), np.datetime64("2020"), np.bytes_(b"x"))),
    st.sampled_from((1j, pd.NA, pd.NaT, Decimal("1.5"), dt.date(2020, 1, 1), 2**63, bytearray(b"x"), Pair(1, [2]))),
    masked().map(lambda value: {"a": [value]}) | st.just({"a": 1}) | st.just([2**63]),
)


@st.composite
def columns(draw: st.DrawFn) -> list[Any]:
    """Cells of the same kind, also with missing ones, or with one of another kind; or of any."""
    kind = draw(st.sampled_from(UNIFORM))
    missing = draw(st.sampled_from((st.nothing(), st.none(), st.none() | FLOATS)))
    cells = draw(st.lists(kind | missing, max_size=5))
    if draw(st.booleans()):
        cells.insert(draw(st.integers(0, len(cells))), draw(RARE))
    return draw(st.just(cells) | st.lists(RARE | st.none(), max_size=3))


@contextmanager
def chosen(engine: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFRECORD_IO_ENGINE", engine)
        yield


def outcome(call: Callable[[], Columns]) -> Any:
    """The schema, the pandas metadata and all values, or the error."""
    try:
        found = call()
        columns = [[str(column.type), repr(column.to_pylist())] for column in found.table.columns]
        batches = [repr(batch.column(0).to_pylist()) for batch in found.batches(1 << 20)] if found.tensors else []
        return found.schema.to_string(), found.schema.metadata, columns, batches
    except (EncodeError, pa.ArrowException, TypeError, ValueError, RecursionError) as error:
        return type(error), str(error), getattr(error, "record", None), str(error.__cause__)


def same(call: Callable[[], Columns]) -> None:
    with chosen("reference_engine"):
        expected = outcome(call)
    with chosen("native"):
        assert outcome(call) == expected


@pytest.mark.usefixtures("native_engine")
@settings(max_examples=rounds(600))
@given(cells=columns(), encodings=st.sampled_from(ENCODINGS), nan_to_null=st.booleans())
@example(cells=[[], np.zeros(0, "f4")], encodings={}, nan_to_null=True)
@example(cells=[[1], [True]], encodings={}, nan_to_null=True)
@example(cells=[[1], np.ones(1, np.int64), objects([2])], encodings={}, nan_to_null=True)
def test_the_pass_is_that_of_python(cells: list[Any], encodings: dict[str, str], nan_to_null: bool) -> None:
    held = objects(cells)
    strided = np.empty((len(cells), 2), object)
    strided[:, 1] = held
    frames: list[Any] = [pd.DataFrame({"x": pd.Series(held, dtype=object), "y": 1})]
    frames.append(pd.DataFrame(strided, columns=["y", "x"]))
    for frame in frames:
        same(partial(table_of_frame, frame, nan_to_null=nan_to_null, encodings=encodings))
    for values in (cells, tuple(cells), held, strided[:, 1], pd.Series(held, dtype=object)):
        same(partial(table_of_arrays, {"x": values}, nan_to_null, encodings))


@pytest.mark.usefixtures("native_engine")
@pytest.mark.parametrize(
    ("cells", "type_"),
    [
        ([np.ones(2, "f4"), None], pa.list_(pa.float32())),
        ([np.ones(2, bool), np.zeros(0, bool)], pa.list_(pa.bool_())),
        ([[1, 2], (3,), objects([4])], pa.list_(pa.int64())),
        ([b"a", None, b"b" * 1000], pa.binary()),
        ([objects([b"a"]), [b"b"], []], pa.list_(pa.binary())),
    ],
)
def test_cells_of_one_type_are_gathered(cells: list[Any], type_: pa.DataType) -> None:
    found = plain_cells(cells, nan_is_missing=False)
    assert isinstance(found, pa.Array)
    found.validate(full=True)
    assert found.type == type_
    assert found.equals(pa.array(cells, type_))


@pytest.mark.usefixtures("native_engine")
def test_references_are_as_before() -> None:
    values = [np.ones(3), b"some bytes", [1.5, 2.5], {"a": [1]}]
    before = [sys.getrefcount(value) for value in values]
    for at in range(len(values)):
        for _ in range(100):
            plain_cells([values[at], None, values[at]], nan_is_missing=True)
    assert [sys.getrefcount(value) for value in values] == before


@pytest.mark.usefixtures("native_engine")
def test_a_list_in_itself_is_left_to_python() -> None:
    endless: list[Any] = [[1]]
    endless[0].append(endless)
    assert plain_cells([endless], nan_is_missing=True) is False


SIMPLE = st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=2) | st.binary(max_size=2)
NOT_SIMPLE = st.sampled_from([np.float16(1), np.ones(2, "M8[s]"), dt.date(2020, 1, 1), Decimal(1), {1}])
NESTED = st.recursive(
    SIMPLE | NOT_SIMPLE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=1), inner, max_size=3),
    max_leaves=6,
)


def _types_in(value: Any) -> set[type]:
    if isinstance(value, list | dict):
        return set().union(*map(_types_in, value.values() if isinstance(value, dict) else value))
    return {type(value)}


@pytest.mark.usefixtures("native_engine")
@given(st.lists(NESTED, max_size=5))
def test_only_cells_that_arrow_converts_without_a_guess_need_no_second_look(cells: list[Any]) -> None:
    found = plain_cells(cells, nan_is_missing=False)
    types = _types_in(cells)
    is_simple = types <= {type(None), bool, int, float, str, bytes} and not types >= {str, bytes}
    if not isinstance(found, pa.Array):
        assert (found is None) == is_simple
