"""Which columns of lists have one length, as far as a sample shows: these are stacked."""

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
    """By name the number of values of each list, of the columns where it is the same throughout the sample.

    Nothing where the options name a form for them all.
    """
    fields = leaf_fields(scan.schema)
    lists = [at for at, f in enumerate(fields) if is_list_like(f.type) and not t.is_fixed_size_list(f.type)]
    lists = [at for at in lists if not is_list_like(fields[at].type.value_type)]
    if options.ragged is not None or not lists:
        return {}
    parts: dict[int, list[Ragged]] = {at: [] for at in lists}
    rows = (
        None
        if options.sample == "all"
        else min(options.sample, options.limit if options.limit is not None else options.sample)
    )
    size = 0
    with scan.over(limit=rows).open() as reader, suppress(TFRecordError, OSError):
        # An error ends the sample, and is told when it is met again, behind the records before it.
        for batch in reader:
            arrays = leaf_arrays(batch)
            for at in lists:
                found = to_rows(arrays[at], fields[at])
                assert isinstance(found, Ragged)
                found.values = found.values[:0]  # only the lengths count
                parts[at].append(found)
            size += batch.nbytes
            if options.sample != "all" and size >= _SAMPLE_BYTES:
                break
    shapes = {fields[at].name: joined(list(found)).common_shape() for at, found in parts.items() if found}  # type: ignore[union-attr]
    return {name: shape[0] for name, shape in shapes.items() if shape is not None}
