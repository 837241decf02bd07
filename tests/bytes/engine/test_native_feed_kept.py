"""`feed_kept` decodes what `feed` would of the records that are kept alone, and leaves their checksums aside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_comparison import ENGINES, essence, feed_on
from reference_engine import ENGINE as REFERENCE
from strategies import datasets, example, int64s, plans
from tfrecord_io.bytes.engine.contract import Array, Engine, EngineDecoder, Plan, Progress

engines = pytest.mark.parametrize("engine", ENGINES, ids=["native", "reference"])


def fed(decoder: EngineDecoder, data: Any, begin: int, lengths: Array, kept: Array) -> Progress:
    """Decode the records that are kept, and accept all embedded schemas."""
    records = consumed = 0
    while True:
        step = decoder.feed_kept(data, begin + consumed, lengths[records:], kept[records:])
        fault = None if step.fault is None else step.fault._replace(record=step.fault.record + records)
        records, consumed = records + step.records, consumed + step.consumed
        if not step.embedded:
            return Progress(records, consumed, fault)
        decoder.accept_embedded()


@engines
@given(datasets(), plans(), st.data(), st.integers(0, 9))
def test_it_decodes_as_if_the_other_records_were_not_there(
    engine: Engine, records: list[bytes], plan: Plan, data: st.DataObject, begin: int
) -> None:
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(records), max_size=len(records))), bool)
    lengths = np.array([len(record) for record in records], np.uint32)
    alone, beside = engine.decoder(plan), engine.decoder(plan)
    chosen = [record for record, is_kept in zip(records, kept.tolist(), strict=True) if is_kept]
    expected, _ = feed_on(alone, REFERENCE.frame(chosen), 0, -1, -1, True)
    progress = fed(beside, bytes(begin) + REFERENCE.frame(records), begin, lengths, kept)
    stop = len(records) if expected.fault is None else int(np.flatnonzero(kept)[expected.records])
    assert progress.records == stop
    assert progress.consumed == sum(len(record) + 16 for record in records[:stop])
    at = {} if expected.fault is None else {"record": stop, "offset": begin + progress.consumed}
    assert essence(progress.fault) == essence(expected.fault and expected.fault._replace(**at))
    assert (beside.rows, beside.value_bytes, beside.counts) == (alone.rows, alone.value_bytes, alone.counts)
    assert beside.new_names == alone.new_names
    for mine, other in zip(beside.take(), alone.take(), strict=True):
        assert repr(mine) == repr(other)


@engines
def test_checksums_are_not_checked_again(engine: Engine) -> None:
    data = bytearray(REFERENCE.frame([example(a=int64s(number)) for number in range(4)]))
    size = len(data) // 4
    data[-1] ^= 1
    decoder = engine.decoder(Plan())
    progress = decoder.feed_kept(data, 0, np.full(4, size - 16, np.uint32), np.array([True, False, True, True]))
    assert (progress.records, progress.consumed, progress.fault) == (4, len(data), None)
    assert decoder.rows == 3


def test_lengths_that_lead_outside_of_the_data_end_it() -> None:
    decoder = ENGINES[0].decoder(Plan())
    data = REFERENCE.frame([example(a=int64s(1))])
    lengths = np.array([len(data) - 16, 2**32 - 1, 1], np.uint32)
    progress = decoder.feed_kept(data, 0, lengths, np.array([True, False, True]))
    assert (decoder.rows, progress.fault) == (1, None)
