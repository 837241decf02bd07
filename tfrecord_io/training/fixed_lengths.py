"""The list columns whose lists all have one length in a sample: these are stacked."""

from __future__ import annotations

from contextlib import suppress

from pyarrow import types as t

from tfrecord_io.arrow.output.ragged import Ragged
from tfrecord_io.arrow.output.to_numpy import joined, leaf_arrays, leaf_fields, to_rows
from tfrecord_io.errors import TFRecordError
from tfrecord_io.options import MIB, IterOptions
from tfrecord_io.read.scan import Scan
from tfrecord_io.schema.types import is_list_like

_SAMPLE_BYTES = 16 * MIB


def sample_lengths(scan: Scan, options: IterOptions) -> dict[str, int]:
    """The length of the lists of each column, by name, where it is the same throughout the sample.

    Empty where the options choose one representation for all list columns.
    """
    fields = leaf_fields(scan.schema)
    lists = [i for i, f in enumerate(fields) if is_list_like(f.type) and not t.is_fixed_size_list(f.type)]
    lists = [i for i in lists if not is_list_like(fields[i].type.value_type)]
    if options.ragged is not None or not lists:
        return {}
    parts: dict[int, list[Ragged]] = {i: [] for i in lists}
    limit = None
    if options.sample != "all":
        limit = options.sample if options.limit is None else min(options.sample, options.limit)
    size = 0
    with scan.over(limit=limit).open() as reader, suppress(TFRecordError, OSError):
        # An error ends the sample; the read itself raises it again, after the records before it.
        reader.defer_warning()
        for batch in reader:
            arrays = leaf_arrays(batch)
            for i in lists:
                rows = to_rows(arrays[i], fields[i])
                assert isinstance(rows, Ragged)
                rows.values, rows.shapes = rows.values[:0], None  # only the lengths count
                parts[i].append(rows)
            size += batch.nbytes
            if options.sample != "all" and size >= _SAMPLE_BYTES:
                break
    shapes = {fields[i].name: joined(list(rows)).common_shape() for i, rows in parts.items() if rows}  # type: ignore[union-attr]
    return {name: shape[0] for name, shape in shapes.items() if shape is not None}
