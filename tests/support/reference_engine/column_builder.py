"""The columns of a decoder: rows are checked against the plan, appended, and returned as buffers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from reference_engine.record_parser import Cell, Steps
from tfrecord_io.bytes.engine.contract import ColumnBuffers, Fault, FaultCode, PlanColumn
from tfrecord_io.bytes.format.feature_types import Kind, Layout, Text

_DTYPES = {Kind.BYTES: np.uint8, Kind.FLOAT: np.float32, Kind.INT64: np.int64}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # Unicode's category Cc except \t \n \r


def is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_text(value: bytes) -> bool:
    """True if `value` is UTF-8 without control characters other than tab, line feed and carriage return."""
    return is_utf8(value) and _CONTROL.search(value.decode()) is None


class Column:
    """The rows of one column since the last take."""

    def __init__(self, plan: PlanColumn, typed_empties: bool = False) -> None:
        self.plan, self._typed_empties = plan, typed_empties
        self.rows: list[Any] = []  # Cell, or Steps where plan.steps; None for null
        self.kind = plan.kind
        self._has_value = False

    def check(self, row: Cell | Steps | None) -> Fault | None:
        """The first fault of `row`: type, then number of values, then text; steps one after another.

        Its record and offset are 0.
        """
        if row is None:
            return self._fault(FaultCode.MISSING_FEATURE) if self.plan.required else None
        kind = self.kind if self._typed_empties or self._has_value else self.plan.kind
        for cell in _cells(row):
            fault = self._check_cell(cell, kind)
            if fault is not None:
                return fault
            kind = cell.kind if self._has_kind(cell) else kind
        return None

    def _check_cell(self, cell: Cell, kind: Kind) -> Fault | None:
        plan = self.plan
        is_other = kind not in (Kind.NONE, cell.kind) and self._has_kind(cell)
        if plan.layout == Layout.NULL or (is_other and not plan.splits):
            return self._fault(FaultCode.KIND, kind, cell.kind)
        if plan.layout == Layout.SCALAR and len(cell.values) != 1:
            return self._fault(FaultCode.VALUE_COUNT, 1, len(cell.values))
        if cell.kind == Kind.BYTES and plan.text == Text.UTF8 and not all(is_utf8(value) for value in cell.values):
            return self._fault(FaultCode.NOT_UTF8)
        if cell.kind == Kind.BYTES and plan.text == Text.STRICT and not all(is_text(value) for value in cell.values):
            return self._fault(FaultCode.NOT_TEXT)
        return None

    def _fault(self, code: FaultCode, expected: int = 0, got: int = 0) -> Fault:
        return Fault(code, 0, 0, feature=self.plan.name, expected=expected, got=got)

    def append(self, row: Any) -> None:
        self.rows.append(row)
        cells = [] if row is None else _cells(row)
        if not self._has_value and (kind := _kind_of(cells, self._typed_empties)) is not None:
            self.kind = self.plan.kind or (kind if self._has_values(cells) else self.kind or kind)
        self._has_value = self._has_value or self._has_values(cells)

    def _has_kind(self, cell: Cell) -> bool:
        """True if the list has a value, without which it has no kind."""
        return self._typed_empties or len(cell.values) > 0

    def _has_values(self, cells: Sequence[Cell]) -> bool:
        return any(map(self._has_kind, cells))

    @property
    def integers_in_lists(self) -> int:
        """Number of integers of the column, if its layout is that of lists."""
        cells = [cell for row in self.rows if row is not None for cell in _cells(row)]
        counts = [
            len(cell.values)
            for cell in cells
            if (self.kind if not self._has_kind(cell) else cell.kind) == Kind.INT64  # an empty list is the column's
        ]
        is_list = self.plan.layout == Layout.LIST or (self.plan.layout == Layout.ANY and set(counts) - {1})
        return sum(counts) if is_list else 0

    @property
    def has_others(self) -> bool:
        """True if some value is of another kind than the column."""
        return any(
            cell.kind != self.kind and self._has_kind(cell)
            for row in self.rows
            if row is not None
            for cell in _cells(row)
        )

    def take(self) -> ColumnBuffers:
        """Return the rows and reset the column, including the kind found in them."""
        rows, self.rows, self.kind, self._has_value = self.rows, [], self.plan.kind, False
        make = _steps_buffers if self.plan.steps else _buffers
        return make(self.plan, rows, self._typed_empties)


def _cells(row: Cell | Steps) -> list[Cell]:
    return [row] if isinstance(row, Cell) else [cell for cell in row if cell is not None]


def _validity(rows: Sequence[Any]) -> Any:
    valid = [row is not None for row in rows]
    return None if all(valid) else np.packbits(valid, bitorder="little")


def _offsets(counts: Sequence[int]) -> Any:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int32)


def _first(rows: Sequence[Any], holds: Any) -> int:
    return next((i for i, row in enumerate(rows) if row is not None and holds(row)), -1)


def _steps_buffers(plan: PlanColumn, rows: Sequence[Any], typed_empties: bool) -> ColumnBuffers:
    steps = _buffers(plan, [step for row in rows if row is not None for step in row], typed_empties)
    return ColumnBuffers(
        plan.name,
        steps.kind,
        Layout.LIST,
        rows=len(rows),
        null_count=sum(row is None for row in rows),
        validity=_validity(rows),
        offsets=_offsets([0 if row is None else len(row) for row in rows]),
        first_row=_first(rows, _cells),
        list_row=_first(rows, lambda row: len(row) != 1),
        steps=steps,
    )


def _kind_of(cells: Sequence[Cell], typed_empties: bool) -> Kind | None:
    """The kind of the first value, else of the first list; None without a list."""
    valued = cells if typed_empties else [cell for cell in cells if len(cell.values)]
    return next((cell.kind for cell in [*valued, *cells]), None)


def _buffers(plan: PlanColumn, rows: Sequence[Cell | None], typed_empties: bool) -> ColumnBuffers:
    cells = [cell for cell in rows if cell is not None]
    kind = plan.kind or _kind_of(cells, typed_empties) or Kind.NONE
    if not typed_empties:  # an empty list of any kind is one of the column's
        rows = [cell if cell is None or len(cell.values) else cell._replace(kind=kind) for cell in rows]
    out = _buffers_of_kind(plan, kind, rows)
    others = sorted({cell.kind for cell in rows if cell is not None} - {kind})
    out.others = tuple(_buffers_of_kind(plan, other, rows) for other in others)
    return out


def _buffers_of_kind(plan: PlanColumn, kind: Kind, rows: Sequence[Cell | None]) -> ColumnBuffers:
    """The rows whose values have this kind; the others are null."""
    rows = [cell if cell is not None and cell.kind == kind else None for cell in rows]
    out = ColumnBuffers(plan.name, kind, plan.layout, len(rows), null_count=sum(cell is None for cell in rows))
    out.first_row = _first(rows, lambda cell: True)
    out.list_row = _first(rows, lambda cell: len(cell.values) != 1)
    if plan.layout == Layout.ANY:
        out.layout = Layout.NULL if out.first_row < 0 else Layout.SCALAR if out.list_row < 0 else Layout.LIST
    if out.layout == Layout.NULL:  # all null, so it has no bitmap
        out.kind = Kind.NONE
        return out
    out.validity = _validity(rows)
    _fill_values(out, rows)
    if kind == Kind.BYTES and plan.text == Text.TRACK:
        out.binary_row = _first(rows, lambda cell: not all(is_text(value) for value in cell.values))
        out.text = out.binary_row < 0
    return out


def _fill_values(out: ColumnBuffers, rows: Sequence[Cell | None]) -> None:
    if out.layout == Layout.LIST:
        out.offsets = _offsets([0 if cell is None else len(cell.values) for cell in rows])
    if out.kind == Kind.NONE:
        return
    null: Any = (b"",) if out.kind == Kind.BYTES else (0,)  # a null scalar has a slot
    if out.layout == Layout.LIST:
        null = ()
    parts = [null if cell is None else cell.values for cell in rows]
    if out.kind == Kind.BYTES:
        values = [value for part in parts for value in part]
        out.value_offsets = _offsets([len(value) for value in values])
        out.values = np.frombuffer(bytearray().join(values), dtype=np.uint8)
    else:
        dtype = _DTYPES[out.kind]
        out.values = np.concatenate([np.empty(0, dtype), *(np.asarray(part, dtype) for part in parts)])
