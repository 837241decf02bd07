"""An index of another content, which no compared record shows: no reader of any library lacks a row."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from reading import read_by
from reading_modes import matching_records_only
from rounds import rounds
from servers import Bucket
from tfrecord_io.read.index import find_index, fingerprint
from tfrecord_io.rows.training.batches_by_number import open_by_number

SCHEMA = {"id": "int64", "label": "int64", "pad": "bytes"}
Ids = list[int]


@pytest.fixture(autouse=True)
def few_records_are_compared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The first and the last record of each file, as if it had many."""
    for module in (fingerprint, find_index):
        monkeypatch.setattr(module, "SMALL_BYTES", 0)
    for is_local in (True, False):
        monkeypatch.setitem(fingerprint._SOME, is_local, 2)
    with matching_records_only():
        yield


def ids(table: Any) -> Ids:
    return list(pa.table(table)["id"].to_pylist())


def of_polars(library: str, name: str) -> Callable[..., Ids]:
    def read(path: str, label: int, **options: Any) -> Ids:
        polars = pytest.importorskip(library)
        frame = (
            read_by(tfr.scan_polars, path, **options) if name == "scan" else tfr.dataset(path, **options).to_polars()
        )
        return list(frame.filter(polars.col("label") == label).collect()["id"].to_list())

    return read


def of_duckdb(path: str, label: int, **options: Any) -> Ids:
    connection = pytest.importorskip("duckdb").connect()
    tfr.register_duckdb(connection, tfr.dataset(path, **options), name="t")
    found = connection.execute(f"SELECT id FROM t WHERE label = {label}").fetchall()
    assert connection.execute(f"SELECT count(*) FROM t WHERE label = {label}").fetchone() == (len(found),)
    return [number for (number,) in found]


def of_daft(path: str, label: int, **options: Any) -> Ids:
    daft = pytest.importorskip("daft")
    return ids(tfr.dataset(path, **options).to_daft().where(daft.col("label") == label).select("id").to_arrow())


def of_dataset(read: Callable[[Any], Ids], library: str = "pyarrow") -> Callable[..., Ids]:
    def from_path(path: str, label: int, **options: Any) -> Ids:
        pytest.importorskip(library)
        return read(tfr.dataset(path, **options).filter(pc.field("label") == label))

    return from_path


def of_batches(path: str, label: int, **options: Any) -> Ids:
    with read_by(tfr.open_reader, path, filters=pc.field("label") == label, batch_size=3, **options) as reader:
        return [number for batch in reader for number in batch["id"].to_pylist()]


def of_training(path: str, label: int, **options: Any) -> Ids:
    batches = read_by(tfr.iter_arrays, path, batch_size=2, filters=pc.field("label") == label, epochs=2, **options)
    numbers = [number for batch in batches for number in batch["id"].tolist()]
    half = len(numbers) // 2
    assert numbers[:half] == numbers[half:]
    return numbers[:half]


def of_selection(path: str, label: int, **options: Any) -> Ids:
    with read_by(tfr.open_random, path, **options) as records:
        chosen = records.select(pc.field("label") == label)
        count = len(chosen)
        found = chosen.to_table()["id"].to_pylist()
        assert count == len(found)
        return list(found)


def both(label: int) -> pc.Expression:
    """The index has one of the two columns."""
    return (pc.field("label") == label) & (pc.field("id") >= 0)


READERS: dict[str, Callable[..., Ids]] = {
    "read_table": lambda path, label, **options: ids(
        read_by(tfr.read_table, path, filters=[("label", "==", label)], **options)
    ),
    "read_tfrecord": lambda path, label, **options: list(
        read_by(tfr.read_tfrecord, path, filters=[("label", "==", label)], **options)["id"]
    ),
    "read_arrays": lambda path, label, **options: read_by(
        tfr.read_arrays, path, filters=[("label", "==", label)], **options
    )["id"].tolist(),
    "open_reader": of_batches,
    "iter_arrays": of_training,
    "select": of_selection,
    "to_table": of_dataset(lambda dataset: ids(dataset.to_table())),
    "to_batches": of_dataset(lambda dataset: ids(pa.Table.from_batches(dataset.to_batches(), dataset.schema))),
    "count_rows": of_dataset(lambda dataset: [-1] * dataset.count_rows()),
    "partly indexed": lambda path, label, **options: ids(read_by(tfr.read_table, path, filters=both(label), **options)),
    "partly indexed dataset": lambda path, label, **options: ids(
        tfr.dataset(path, **options).filter(both(label)).to_table()
    ),
    "pieces": of_dataset(lambda dataset: [n for piece in dataset.pieces(1) for n in ids(piece.read())]),
    "rows by number": of_dataset(
        lambda dataset: open_by_number(dataset).arrays(range(dataset.count_rows()))["id"].tolist()
    ),
    "scan_polars": of_polars("polars", "scan"),
    "to_polars": of_polars("polars", "dataset"),
    "duckdb": of_duckdb,
    "daft": of_daft,
    "dask": of_dataset(lambda dataset: dataset.to_dask().compute(scheduler="sync")["id"].tolist(), "dask.dataframe"),
    "xarray": of_dataset(lambda dataset: dataset.to_xarray()["id"].values.tolist(), "xarray"),
    "hf": of_dataset(lambda dataset: list(dataset.to_hf()["id"]), "datasets"),
    "torch": of_dataset(
        lambda dataset: [n for batch in dataset.to_torch(batch_size=3) for n in batch["id"].tolist()], "torch"
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_no_row_is_missing(reader: str) -> None:
    """Two records of a file have changed places since its index was written; it is older than the index."""

    @settings(max_examples=rounds(6))
    @given(data=st.data(), embedded=st.booleans(), labels=st.lists(st.integers(0, 3), min_size=5, max_size=40))
    def law(data: st.DataObject, embedded: bool, labels: list[int]) -> None:
        places = st.integers(1, len(labels) - 2)
        pairs = st.tuples(places, places).filter(lambda pair: labels[pair[0]] != labels[pair[1]])
        if len(set(labels[1:-1])) < 2:
            return
        a, b = data.draw(pairs)
        now = list(labels)
        now[a], now[b] = labels[b], labels[a]
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/a.tfrecord"
            for name, values in (("b", labels), ("a", now)):
                rows = {"id": range(len(now)), "label": values, "pad": [bytes(100)] * len(now)}
                tfr.write_tfrecord(rows, f"{folder}/{name}.tfrecord", embed_schema=embedded)
            options: dict[str, Any] = {} if embedded else {"schema": SCHEMA}
            read_by(tfr.build_index, f"{folder}/b.tfrecord", columns=["label"], **options)
            Path(f"{folder}/b.tfrecord.column_index").rename(f"{path}.column_index")
            os.utime(path, (1, 1))
            expected = [number for number, label in enumerate(now) if label == labels[a]]
            with pytest.warns(tfr.errors.StaleIndexWarning, match=r"not (used|match)"):
                found = READERS[reader](path, labels[a], **options)
        assert found == (expected if reader != "count_rows" else [-1] * len(expected))

    law()


SILENT: dict[str, Callable[..., Ids]] = {  # which do without such an index, and say nothing
    "pieces": of_dataset(lambda dataset: [n for piece in dataset.pieces(4) for n in ids(piece.read())]),
    "select": lambda path, label, **options: _selected(path, both(label), **options),
    "delete": lambda path, label, **options: _deleted(path, label, **options),
}


def _selected(path: str, condition: Any, **options: Any) -> Ids:
    with read_by(tfr.open_random, path, **options) as records:
        return list(records.select(condition).to_table()["id"].to_pylist())


def _deleted(path: str, label: int, **options: Any) -> Ids:
    every = set(ids(read_by(tfr.read_table, path, **options)))
    tfr.delete(tfr.dataset(path, **options), filters=[("label", "==", label)])
    return sorted(every - set(ids(read_by(tfr.read_table, path, **options))))


@pytest.mark.parametrize("reader", SILENT)
@pytest.mark.parametrize("first", [True, False])
def test_no_row_is_missing_in_any_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str, first: bool
) -> None:
    """Two records have changed places, one in the first piece and one in the last."""
    set_limits(monkeypatch, least_piece_bytes=1)
    path, labels = str(tmp_path / "a.tfrecord"), [0, 1, *[0] * 36, 2, 0]
    now = [0, 2, *[0] * 36, 1, 0]
    for name, values in (("b", labels), ("a", now)):
        rows = {"id": range(40), "label": values, "pad": [bytes(100)] * 40}
        tfr.write_tfrecord(rows, tmp_path / f"{name}.tfrecord")
    tfr.build_index(tmp_path / "b.tfrecord", columns=["label"])
    (tmp_path / "b.tfrecord.column_index").rename(f"{path}.column_index")
    os.utime(path, (1, 1))
    assert len(tfr.dataset(path).pieces(4)) > 1
    assert SILENT[reader](path, 1 + first) == [1 if first else 38]


def test_an_object_that_was_written_again(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed record that no index names: the object has another tag, of an upload in parts."""
    options: dict[str, Any] = {"storage_options": s3.storage_options, "schema": SCHEMA}
    path, parts = s3.url("a.tfrecord"), 6 << 20
    for label in (1, 2):
        labels = [label if number == 7 else 0 for number in range(20)]
        rows = {"id": range(20), "label": labels, "pad": [bytes(parts // 10)] * 20}
        tfr.write_tfrecord(rows, s3.url(f"{label}.tfrecord"), embed_schema=False, storage_options=s3.storage_options)
    content = s3.fs.cat(f"{s3.name}/1.tfrecord")
    with s3.fs.open(f"{s3.name}/a.tfrecord", "wb", block_size=parts) as file:
        file.write(content)
    read_by(tfr.build_index, path, columns=["label"], **options)
    assert ids(read_by(tfr.read_table, path, filters=[("label", "==", 1)], **options)) == [7]  # and no warning
    with s3.fs.open(f"{s3.name}/a.tfrecord", "wb", block_size=parts) as file:
        file.write(s3.fs.cat(f"{s3.name}/2.tfrecord"))
    s3.fs.invalidate_cache()
    with pytest.warns(
        tfr.errors.StaleIndexWarning, match="the object was written again since .* the index is not used"
    ):
        assert ids(read_by(tfr.read_table, path, filters=[("label", "==", 2)], **options)) == [7]
