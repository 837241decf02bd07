"""Each call heeds what a dataset states of how it is read, or refuses it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from border import FULL_NAMES, PUBLIC, public
from limited import set_limits
from reading_modes import decoded_by, matching_records_only
from rounds import COMPLETE
from source_calls import CALLS, ROWS, f, of, outcome, payloads
from tfrecord_io.base.options.calls_on_datasets import REFUSED, kept_by_dataset
from tfrecord_io.base.options.read import DatasetOptions
from tfrecord_io.read.scan import Scan
from tfrecord_io.typing import UNSET


def damage(path: str, byte: int, records: Sequence[int] | None = None) -> None:
    """Change a byte of records, all by default, of a file that is not compressed."""
    data, begin, number = bytearray(Path(path).read_bytes()), 0, 0
    while begin < len(data):
        end = begin + int.from_bytes(data[begin : begin + 8], "little") + 16
        if records is None or number in records:
            data[begin + byte if byte >= 0 else end + byte] ^= 1
        begin, number = end, number + 1
    Path(path).write_bytes(data)


def unchecked() -> Any:
    for path in Path("a").glob("*.tfrecord"):
        damage(str(path), -1)
    return "a", {"check_crc": False}


def skipping() -> Any:
    """Records whose lengths are damaged, so that all calls leave them out."""
    tfr.write_tfrecord(ROWS[:16], "damaged.tfrecord")
    damage("damaged.tfrecord", 0, [3, 9])
    return "damaged.tfrecord", {"on_error": "skip"}


def without_damaged() -> str:
    tfr.write_tfrecord(of((0, 3), (4, 9), (10, 16)), "intact.tfrecord")
    return "intact.tfrecord"


def shards(name: str, rows: pa.Table) -> str:
    """A dataset of shards of four rows, as `a` is."""
    for first in range(0, len(rows), 4):
        tfr.write_tfrecord(rows[first : first + 4], f"{name}/", mode="append")
    return name


TYPED = ROWS.schema.set(0, pa.field("n", pa.int64()))


def typed() -> str:
    return shards("typed", ROWS[:16].cast(TYPED))


def with_paths() -> str:
    return shards("with paths", tfr.read_table(tfr.dataset("a", include_file_paths="file")))


# By option that a dataset may state: a path and what is stated of it, and a path of files from which the same is read
# without it. Each is crossed with each call.
OPTIONS: dict[str, tuple[Callable[[], tuple[str, dict[str, Any]]], Callable[[], str]]] = {
    "check_crc": (unchecked, lambda: "a"),
    "on_error": (skipping, without_damaged),
    "include_file_paths": (lambda: ("a", {"include_file_paths": "file"}), with_paths),
    "schema": (lambda: ("a", {"schema": TYPED}), typed),
    "schema_overrides": (lambda: ("a", {"schema_overrides": {"n": "int64"}}), typed),
}

_INFERRED = "it changes how types are inferred, in columns/schema/inferred_type.py alone"
_PACE = "it changes no row"
_PLACE = "it says where files are, and not what is read of them"
# The other options of a dataset: why they are not crossed with each call.
OTHERWISE = {
    **dict.fromkeys(("columns", "filters", "offset", "limit"), "it is a selection: tests/read/test_sources.py"),
    **dict.fromkeys(("compression", "limits"), "the tests below cross it with each call"),
    **dict.fromkeys(("stable_types", "infer_text", "large_offsets", "sample", "on_new"), _INFERRED),
    "record_type": "it makes other columns of the records: tests/read/test_reader_messages.py",
    **dict.fromkeys(("threads", "progress", "batch_size", "batch_bytes"), _PACE),
    **dict.fromkeys(("storage_options", "filesystem", "split", "allow_missing_shards"), _PLACE),
}
# By option: the calls that say nothing of the columns, or copy the records as they are in the files.
AS_THEY_ARE = {
    "include_file_paths": (
        *("RecordReader", "verify", "salvage", "copy", "compact", "delete", "write_indexes", "check_indexes"),
    ),
    "schema": ("copy", "delete"),
    "schema_overrides": ("copy", "delete"),
}
# Calls that read some rows or columns, which column indexes have, or which are decoded before the others.
OF_SOME = {
    "read_table, narrowed",
    "read_table, of a text",
    "read_table, of some columns",
    "open_random, selected",
    "delete",
}


@contextmanager
def by_indexes() -> Iterator[None]:
    """Read files by their column indexes, however small they are."""
    with matching_records_only(), pytest.MonkeyPatch.context() as patch:
        set_limits(patch, decoded_file_bytes=0)
        yield


@contextmanager
def in_two_steps() -> Iterator[None]:
    """Decode the columns of a filter before the others, however small files are."""
    with decoded_by([(True, None)]), pytest.MonkeyPatch.context() as patch:
        set_limits(patch, decoded_file_bytes=0)
        yield


STATES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "stated": nullcontext,
    "opened": nullcontext,
    "indexed": by_indexes,
    "filtered in two steps": in_two_steps,
}


def tried() -> Iterator[tuple[str, str, str]]:
    """Each call with each option: in each state where that may matter, and in the complete run; otherwise in one."""
    there = (call for call in CALLS if call in PUBLIC or call not in FULL_NAMES)
    for number, call in enumerate(there):
        for option in OPTIONS:
            states = list(STATES) if COMPLETE or call in OF_SOME else [("stated", "opened")[number % 2]]
            yield from ((call, option, state) for state in states)


def test_each_option_of_a_dataset_is_tried_with_each_call() -> None:
    names = {f.name for f in fields(DatasetOptions)}
    lacking = sorted(names - OPTIONS.keys() - OTHERWISE.keys())
    assert not lacking, (
        f"add a row to OPTIONS for {', '.join(lacking)}: a path, the option, and the path of files that are read "
        "alike without it; or to OTHERWISE, why it makes no difference to a call"
    )
    assert {*OPTIONS, *OTHERWISE} == names
    assert not OPTIONS.keys() & OTHERWISE.keys()


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
@pytest.mark.parametrize("case", tried(), ids="-".join)  # of one parameter, so that no tier leaves any out
def test_each_call_heeds_what_a_dataset_states_or_refuses_it(
    case: tuple[str, str, str], files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that fails has to ask for the option, or to refuse it in `REFUSED`."""
    call, option, state = case
    (run, _), (make, same) = CALLS[call], OPTIONS[option]
    monkeypatch.chdir(tmp_path)
    if state == "indexed" and (call == "check_indexes" or option == "on_error"):  # damaged files have no index
        return

    def stating() -> Any:
        path, options = make()
        if state == "indexed":
            tfr.build_index(tfr.dataset(path, check_crc=option != "check_crc"), columns=["n", "key"])
        source = tfr.dataset(path, **options)
        assert state != "opened" or source.schema.names
        return source

    with STATES[state]():
        found = outcome(run, stating, files, tmp_path / "found")
    if option in REFUSED.get(call.partition(" ")[0].rstrip(","), ()):
        assert found[0] is ValueError
        assert f"takes no {option}= of a dataset" in found[1]
        return
    if (call, option) == ("Dataset.to_grain", "on_error"):  # rows have numbers before they are read
        assert found[0] is ValueError
        return
    as_they_are = call in AS_THEY_ARE.get(option, ())
    assert found == outcome(run, (lambda: "a") if as_they_are else same, files, tmp_path / "expected")


@pytest.mark.parametrize("call", [name for name in CALLS if name not in ("count", "read_metadata")])  # by the manifest
def test_each_call_heeds_the_limits_of_a_dataset_or_refuses_them(
    call: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = lambda: tfr.dataset("a", limits=tfr.Limits(record_bytes=5))  # noqa: E731
    try:
        found = outcome(CALLS[call][0], source, files, tmp_path / "found")
    except Exception as error:  # of DuckDB
        found = type(error), str(error)
    if call in ("verify", "salvage"):
        assert found[0] in (False, 0)
    elif call == "check_indexes":
        assert set(found) == {tfr.errors.CorruptRecordError}
    else:
        assert ("takes no limits= of a dataset" if call == "copy" else "over the limit of 5 bytes") in found[1]


@pytest.mark.parametrize("call", [name for name in CALLS if name not in ("count", "read_metadata")])  # by the manifest
def test_each_call_heeds_the_compression_of_a_dataset_or_refuses_it(
    call: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = lambda: tfr.dataset("a", compression="gzip")  # noqa: E731
    try:
        found = outcome(CALLS[call][0], source, files, tmp_path / "found")
    except Exception as error:  # of DuckDB
        found = type(error), str(error)
    if call == "verify":
        assert not found[0]
    else:
        assert "takes no compression= of a dataset" in found[1] or "gzip" in found[1], found


_CALLS = [public(name) for name in sorted(PUBLIC) if FULL_NAMES[name] in (name, f"formats.{name}")]


OF_SOURCES = [call for call in _CALLS if callable(call) and kept_by_dataset(call) and call is not tfr.dataset]


@pytest.mark.parametrize("call", OF_SOURCES, ids=lambda call: call.__name__)
def test_a_keyword_that_a_dataset_may_state_is_left_to_it_by_default(call: Any) -> None:
    """A call whose default is a value would override, or contradict, each dataset that states another one."""
    own = {"copy": {"threads", "progress"}, "diff": {"limit", "progress"}}.get(
        call.__name__, set()
    )  # not those of a dataset
    own |= {"compression"} if "target" in inspect.signature(call).parameters else set()
    for parameter in inspect.signature(call).parameters.values():
        if parameter.name in kept_by_dataset(call) - own and parameter.default is not parameter.empty:
            assert parameter.default in (None, UNSET), parameter.name


@pytest.mark.parametrize("name", ["compression", "limits"])
@pytest.mark.parametrize("call", OF_SOURCES, ids=lambda call: call.__name__)
def test_compression_and_limits_beside_a_path_belong_to_a_call_or_are_named(call: Any, name: str) -> None:
    """A compression is that of a target, if a call writes one; limits are those of what is read."""
    value = {"compression": "gzip", "limits": tfr.Limits(record_bytes=5)}[name]
    parameters = inspect.signature(call).parameters
    if name in parameters:
        assert name == "compression"
        assert "target" in parameters
        return
    with pytest.raises(TypeError) as error:
        call("a.tfrecord", **{name: value})
    refused = name in REFUSED.get(call.__name__, ())
    assert f"{name}=" in str(error.value) or f"'{name}'" in str(error.value)
    named = "source_options=" if call is tfr.convert else "tfr.dataset("
    assert refused or named in str(error.value)


@pytest.mark.parametrize("call", [tfr.merge, tfr.shuffle, tfr.dedupe, tfr.split, tfr.sample, tfr.convert])
def test_a_compression_beside_a_path_is_that_of_the_target(call: Any, files: Path, tmp_path: Path) -> None:
    own = {tfr.dedupe: {"by": "n"}, tfr.sample: {"n": 24}, tfr.shuffle: {"seed": 1}}.get(call, {})
    target = f"{tmp_path}/out@1" if call is tfr.split else tmp_path / "out.tfrecord"
    call(files / "all.tfrecord", target, compression="gzip", **own)
    (written,) = tmp_path.glob("out*")
    assert written.read_bytes()[:2] == b"\x1f\x8b"
    assert tfr.read_table(written).num_rows == 24


def test_plain_files_may_be_called_plain_for_calls_that_read_by_number(files: Path) -> None:
    with tfr.open_random(tfr.dataset(files / "all.tfrecord", compression=None)) as records:
        assert len(records) == 24
    with pytest.raises(ValueError, match=r"takes no compression= of a dataset: only plain files have records"):
        tfr.open_random(tfr.dataset(files / "all.tfrecord", compression="gzip"))


def test_limits_and_compression_of_salvage_are_those_of_the_files(files: Path, tmp_path: Path) -> None:
    path, target = files / "all.tfrecord", tmp_path / "out.tfrecord"
    with pytest.raises(tfr.errors.CompressionError, match="the stated compression is 'gzip'"):
        tfr.salvage(tfr.dataset(path, compression="gzip"), target)
    assert tfr.salvage(tfr.dataset(path, limits=tfr.Limits(record_bytes=5)), target).records == 0
    for name in ("compression", "limits", "record_type"):
        with pytest.raises(TypeError, match=rf"to dataset\(\): tfr.salvage\(tfr.dataset\(source, {name}=…\), …\)"):
            tfr.salvage(path, target, **{name: object()})


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A file of 30 records, of which number 7 is damaged."""
    path = tmp_path / "damaged.tfrecord"
    tfr.write_tfrecord({"n": list(range(30))}, path, write_index=True)
    begin, size = (int(word) for word in Path(f"{path}.index").read_text().splitlines()[7].split())
    data = bytearray(path.read_bytes())
    data[begin + size - 5] ^= 1
    path.write_bytes(data)
    Path(f"{path}.index").unlink()
    return path


def test_a_dataset_brings_its_options(damaged: Path) -> None:
    source = tfr.dataset(damaged, on_error="skip", schema={"n": "int32"}, include_file_paths="path")
    with pytest.warns(tfr.errors.DamagedDataWarning):
        found = tfr.read_table(source)
    assert (found.num_rows, found.schema.names, found.schema.field("n").type) == (29, ["n", "path"], pa.int32())
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert tfr.count(tfr.dataset(damaged, on_error="skip"), check_crc=True) == 29
    chosen = tfr.dataset(damaged, on_error="skip").filter(f("n") > 5)
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert [each["n"] for each in payloads(chosen)] == [[6], *([n] for n in range(8, 30))]


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
@pytest.mark.matrix
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("has_schema", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_a_callable_is_asked_once_about_each_region(
    call: str, has_schema: bool, opened: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "on_error" in REFUSED.get(call.partition(" ")[0], ()) or call in ("xarray", "dataset, pickled"):
        return
    if call in ("Dataset.head", "Dataset.to_grain"):  # which reads no damage, and refuses it
        return
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord(ROWS, "all.tfrecord", embed_schema=has_schema)
    tfr.write_tfrecord(ROWS[:16], "damaged.tfrecord", embed_schema=has_schema)
    damage("damaged.tfrecord", 0, [3, 9])
    asked = list[int]()

    def answer(error: tfr.TFRecordError) -> bool:
        assert error.region is not None
        asked.append(error.region.records_before)
        return True

    source = tfr.dataset("damaged.tfrecord", on_error=answer)
    assert not opened or source.schema.names
    CALLS[call][0](source, tmp_path)
    if call == "dataset, in pieces":  # of a piece, records are counted from its begin
        assert len(asked) == 2
        return
    assert sorted(asked) in ([3, 9], [] if call == "read_metadata" and has_schema else [3, 9])


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
def test_pieces_and_selections_of_a_dataset_share_its_answers(damaged: Path) -> None:
    asked = list[tuple[str, int | None]]()

    def answer(error: tfr.TFRecordError) -> bool:
        assert error.region is not None
        asked.append((error.region.path, error.region.begin))
        return len(asked) == 1  # would raise the same error a second time

    source = tfr.dataset(damaged, on_error=answer)
    assert source.to_table().num_rows == tfr.read_table(source, limit=40).num_rows == 29
    assert sum(piece.read().num_rows for piece in source.pieces(3)) == 29
    assert source.filter(f("n") > 3).to_table().num_rows == 25
    assert tfr.count(source.filter(f("n") > 3)) == 25
    assert len(asked) == 1
    with pytest.raises(tfr.errors.CorruptRecordError):
        tfr.read_table(damaged, on_error=answer)


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
def test_rows_that_arrays_cannot_hold_are_asked_about_once_in_each_piece(tmp_path: Path) -> None:
    """Where they begin is not known: records are counted from the begin of a piece."""
    tfr.write_tfrecord({"x": [None if n % 8 == 3 else n for n in range(64)]}, tmp_path / "gaps")
    asked = list[int]()
    source = tfr.dataset(tmp_path / "gaps", on_error=lambda error: not asked.append(error.region.records_before))
    for _ in range(2):
        batches = [tfr.iter_arrays(piece, batch_size=5, epochs=2) for piece in source.pieces(4)]
        assert sorted(int(n) for each in batches for batch in each for n in batch["x"])[::2] == [
            n for n in range(64) if n % 8 != 3
        ]
        assert len(asked) == 8


def merged_part(source: tfr.Dataset) -> None:
    tfr.merge(tfr.Dataset(replace(Scan.unwrap(source), origin=None)), "out.tfrecord")


@pytest.mark.parametrize("call", [payloads, merged_part])
def test_damage_among_chosen_records_is_where_it_is_in_the_file(
    damaged: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(damaged.parent)
    with pytest.raises(tfr.errors.CorruptRecordError) as expected:
        payloads(damaged)
    source = tfr.dataset(damaged, check_crc=False).filter(f("n") >= 5)
    with pytest.raises(tfr.errors.CorruptRecordError) as error:
        call(tfr.Dataset(replace(Scan.unwrap(source), options=Scan.unwrap(source).options.changed(check_crc=True))))
    assert (error.value.path, error.value.record) == (str(damaged), 7)
    assert error.value.offset == expected.value.offset


def test_options_of_a_dataset_are_not_given_again(files: Path) -> None:
    source = tfr.dataset(files / "a", check_crc=False, limits=tfr.Limits(features=50))
    assert tfr.read_table(tfr.dataset(source, check_crc=False, threads=1)).num_rows == 16
    for other in (source, source.filter(f("n") > 3)):
        with pytest.raises(ValueError, match=r"limits= differs .*: tfr\.dataset\(path, limits=…\)$"):
            tfr.dataset(other, limits=tfr.Limits(features=60))
    with pytest.raises(ValueError, match=r"check_crc= differs .*: tfr\.dataset\(path, check_crc=…\)$"):
        tfr.dataset(tfr.dataset(files / "a").filter(f("n") > 3), check_crc=False)
    stated = tfr.dataset(files / "a", on_error="skip", schema={"n": "int32"})
    for call in (tfr.read_table, tfr.describe, tfr.dataset, tfr.read_arrays, tfr.open_random):
        with pytest.raises(ValueError, match=r"on_error= differs .*: tfr\.dataset\(path, on_error=…\)$"):
            call(stated, on_error=lambda error: True)
    for other in (stated, tfr.dataset(files / "a").filter(f("n") > 3)):
        with pytest.raises(ValueError, match=r"^iter_arrays: schema= differs from that of the dataset"):
            tfr.iter_arrays(other, batch_size=2, schema={"n": "int8"})
    for other in (tfr.dataset(files / "a", limit=3), tfr.dataset(files / "a").limit(3)):
        for name, value in {"schema": {"n": "int32"}, "on_error": "skip"}.items():
            with pytest.raises(ValueError, match=f"{name}= differs from that of the dataset"):
                tfr.read_table(other, limit=2, **{name: value})
    with pytest.raises(ValueError, match=r"^the datasets differ in check_crc=: open them with the same"):
        tfr.count([source, tfr.dataset(files / "b", limits=tfr.Limits(features=50))])
    with pytest.raises(TypeError, match="unexpected keyword"):
        tfr.count(source, colums=["n"])
    with pytest.raises(TypeError, match="a Dataset is given alone, or in a list"):
        tfr.read_table(iter([source]))
