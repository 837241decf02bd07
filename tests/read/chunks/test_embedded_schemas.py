"""Embedded schemas that disagree inside of a file are found, whichever file showed them before."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.columns.schema import merged_schema
from tfrecord_io.columns.schema.embedded import EmbeddedSchema, pack
from tfrecord_io.read.chunks.embedded_schemas import unite_embedded


def test_a_schema_known_from_another_file_is_compared_with_the_first_of_its_file(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1], "x": [2]}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"n": [3]}, tmp_path / "b.tfrecord")
    joined = tmp_path / "joined.tfrecord"
    joined.write_bytes((tmp_path / "a.tfrecord").read_bytes() + (tmp_path / "b.tfrecord").read_bytes())
    for paths in ([joined], [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord", joined]):
        with pytest.raises(tfr.errors.SchemaError, match="differs from that of the file's first record") as caught:
            tfr.read_table(paths)
        assert (caught.value.path, caught.value.record) == (str(joined), 1)


_TYPES = [pa.int8(), pa.int64(), pa.string(), pa.null(), pa.float32()]
_CATEGORIES = st.lists(st.sampled_from("abcd"), unique=True)


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """An embedded schema of some columns, with categories in any order."""
    names = draw(st.lists(st.sampled_from("xyz"), min_size=1, unique=True))
    fields = [pa.field(name, draw(st.sampled_from(_TYPES))) for name in names]
    known = {name: pa.array(draw(_CATEGORIES), pa.string()) for name in draw(st.sets(st.sampled_from("cd")))}
    fields += [pa.field(name, pa.dictionary(pa.int32(), pa.string(), draw(st.booleans()))) for name in known]
    return pack(pa.schema(fields), known)


@settings(max_examples=rounds(200))
@given(found=st.lists(contents(), min_size=1, max_size=8))
def test_schemas_are_united_as_one_after_the_other(found: list[bytes]) -> None:
    expected = reduce(EmbeddedSchema.merge, [EmbeddedSchema.parse(each, str(n)) for n, each in enumerate(found)])
    united = unite_embedded(None, [(each, str(n)) for n, each in enumerate(found)])
    assert united is not None
    assert united.schema.equals(expected.schema, check_metadata=True)
    assert (united.path, united.origins) == (expected.path, expected.origins)
    assert {name: str(error) for name, error in united.conflicts.items()} == {
        name: str(error) for name, error in expected.conflicts.items()
    }
    assert {name: values.to_pylist() for name, values in united.dictionaries.items()} == {
        name: values.to_pylist() for name, values in expected.dictionaries.items()
    }


def test_categories_of_many_files_are_joined_in_few_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a number that grows with the square of the number of files, also while the files are read."""
    files, each, joined = 60, 50, list[int]()
    for n in range(files):
        values = pa.array([f"{n}-{i}" for i in range(each)]).dictionary_encode()
        tfr.write_tfrecord(pa.table({"c": values}), tmp_path / f"{n:03}.tfrecord")
    join = merged_schema.join_categories

    def counted(known: pa.Array, others: pa.Array) -> pa.Array:
        joined.append(len(known) + len(others))
        return join(known, others)

    monkeypatch.setattr(merged_schema, "join_categories", counted)
    table = tfr.read_table(f"{tmp_path}/*.tfrecord")
    assert [table["c"][n].as_py() for n in (0, files * each - 1)] == ["0-0", f"{files - 1}-{each - 1}"]
    assert sum(joined) <= 10 * files * each
