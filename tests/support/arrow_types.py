"""Random Arrow types, for Hypothesis."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

VALUES = st.sampled_from(
    [
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.float64(),
        pa.bool_(),
        pa.string(),
        pa.large_binary(),
        pa.binary(7),
        pa.date32(),
        pa.time64("ns"),
        pa.duration("s"),
        pa.timestamp("ms", "Europe/Paris"),
        pa.decimal128(12, 3),
        pa.dictionary(pa.int8(), pa.string(), ordered=True),
        pa.null(),
    ]
)
TYPES = st.recursive(
    VALUES,
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        inner.map(lambda value: pa.list_(value, 2)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda values: pa.struct([(f"f{i}", v) for i, v in enumerate(values)])
        ),
    ),
    max_leaves=5,
)
