"""Conditions on the values of lists, ``("tags", "contains", "cat")``, for which Arrow has no function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.expression_columns import Node, expression_of, expression_tree
from tfrecord_io.arrow.typed_literals import with_typed_literals
from tfrecord_io.errors import SchemaError
from tfrecord_io.options.filters import CONTAINS
from tfrecord_io.schema.type_names import short_type_name
from tfrecord_io.schema.types import is_list_like

if TYPE_CHECKING:
    import pyarrow.compute as pc

Evaluate = Callable[["pc.Expression", pa.RecordBatch], pa.Array]


def names_lists(expression: pc.Expression) -> bool:
    """Whether a condition has a part on the values of lists."""
    return f"{CONTAINS}(" in str(expression) and _has_contains(expression_tree(expression))


def _has_contains(node: Node) -> bool:
    return node.name == CONTAINS or any(map(_has_contains, node.arguments))


def with_list_matches(
    expression: pc.Expression, batch: pa.RecordBatch, evaluate: Evaluate
) -> tuple[pc.Expression, pa.RecordBatch]:
    """The condition with a further column of the batch for each such part: whether the row's list has the value.

    SchemaError if the column has no lists, or the value cannot be compared with theirs.
    """
    added: dict[str, pa.Array] = {}

    def replaced(node: Node) -> Node:
        if node.name != CONTAINS:
            return node.replaced([replaced(argument) for argument in node.arguments])
        name = f"\0{len(added)}"
        while name in batch.schema.names:
            name += "\0"
        added[name] = _matches(node, batch, evaluate)
        return Node("field", path=(name,))

    tree = replaced(expression_tree(expression))
    arrays, names = [*batch.columns, *added.values()], [*batch.schema.names, *added]
    return expression_of(tree), pa.RecordBatch.from_arrays(arrays, names)


def _matches(node: Node, batch: pa.RecordBatch, evaluate: Evaluate) -> pa.Array:
    """Whether each list has a value that is equal to the literal; null where it is missing."""
    import pyarrow.compute as pc

    (column, *inner), literal = node.arguments[0].path, node.arguments[1].value
    lists = batch.column(column)
    for name in inner:
        lists = pc.struct_field(lists, name)
    if t.is_map(lists.type) or not is_list_like(lists.type):
        reason = f"the filter asks whether lists contain a value, and the column is {short_type_name(lists.type)}"
        raise SchemaError(
            reason, feature=column, got=str(lists.type), advice="compare it by ==, in or another operator"
        )
    items = pa.RecordBatch.from_arrays([lists.flatten()], [column])
    condition = with_typed_literals(pc.field(column) == pc.scalar(literal), items.schema)
    hits = np.asarray(evaluate(condition, items).fill_null(False))
    ends = np.cumsum(np.asarray(lists.value_lengths().fill_null(0)), dtype=np.int64)
    counts = np.diff(np.concatenate(([0], np.cumsum(hits)))[np.concatenate(([0], ends))])
    return pa.array(counts > 0, mask=np.asarray(lists.is_null()))
