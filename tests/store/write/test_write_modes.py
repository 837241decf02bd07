"""A change makes the next manifest, recognises its own, and answers the questions of a publication."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from tfrecord_io.store.copies.copied_dataset import Copy, plan
from tfrecord_io.store.filesystem.interface import LocalFileSystem
from tfrecord_io.store.paths.manifest import Manifest, Txn
from tfrecord_io.store.paths.resolve_output import Output
from tfrecord_io.store.read.source import ManifestFile
from tfrecord_io.store.write.old_files import OldFiles
from tfrecord_io.store.write.publication import Publication, place_of
from tfrecord_io.store.write.replacement import NewShard, ReplaceShards
from tfrecord_io.store.write.write_modes import Append, Change, Overwrite, ReplaceFolders, Rules, Whole, change_of
from tfrecord_io.write.schema_union import SchemaUnion

MOST_ATTRIBUTES = 18
OWN_ID, OLD_ID = "1" * 16, "0" * 16
OLD = Manifest("part", OLD_ID, (ManifestFile(f"part-00000-{OLD_ID}.tfrecord", 1, 1, 0),))
OWN = Manifest("part", OWN_ID, (ManifestFile(f"part-00001-{OWN_ID}.tfrecord", 1, 1, 0),))
UNITE = SchemaUnion()
PLAN = plan(OWN._replace(id=OLD_ID), OLD, {}, keeps=True, stages_all=False, by_store=False)
CHANGES: dict[str, Change] = {
    "whole": Whole(overwrite=True),
    "append": Append(UNITE),
    "overwrite": Overwrite(UNITE),
    "replace folders": ReplaceFolders(UNITE),
    "replace shards": ReplaceShards(OLD, (NewShard(OLD.files, ((0, 1),)),), (), "compacted"),
    "copy": Copy(PLAN, OLD, OWN_ID),
}


def concrete(cls: type[Change]) -> set[str]:
    """The names of the classes below a class that can be made; a class with slots is there twice."""
    below = set[str]().union(*map(concrete, cls.__subclasses__()))
    return below if cls.__abstractmethods__ else {cls.__name__, *below}


@pytest.fixture
def old(tmp_path: Path) -> OldFiles:
    return OldFiles(place_of(LocalFileSystem(), f"{tmp_path}/", "part"), "part", grows=True)


def test_there_are_no_other_changes() -> None:
    assert concrete(Change) == {type(change).__name__ for change in CHANGES.values()}


def test_a_rule_has_no_default() -> None:
    assert all(field.default is MISSING and field.default_factory is MISSING for field in fields(Rules))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_pickled(change: Change) -> None:
    assert pickle.loads(pickle.dumps(change)) == change


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_recognises_its_own_manifest(change: Change, old: OldFiles) -> None:
    new = change.next(OLD, OWN, old)
    assert new is not None
    assert change.is_in(new, OWN_ID)
    assert not change.is_in(OLD, OWN_ID)
    assert not change.is_replaced_in(OLD, OWN_ID)
    assert change.is_replaced_in(OLD._replace(replaced_ids=(OWN_ID,)), OWN_ID)


def test_a_manifest_that_begins_a_dataset_is_not_yet_that_of_its_writer(old: OldFiles) -> None:
    """Also of a writer without shards: another one may append to it before."""
    change, own = Append(UNITE), OWN._replace(files=(), metadata=(("a", "b"),))
    begun = change.first_manifest(Manifest("part", OWN_ID))
    assert not change.is_in(begun, OWN_ID)
    assert not change.is_in(begun._replace(files=OLD.files), OWN_ID)
    new, id = change.next(begun, own, old), change.id_to_state(own, old)
    assert new is not None
    assert id is not None
    assert change.is_in(new._replace(replaced_ids=(id,)), OWN_ID)


# The fields of a manifest: what identifies it, what a publication settles, what two datasets have in common, and facts.
OF_PUBLICATION = {
    "dataset",
    "id",
    "files",
    "complete",
    "replaces",
    "replaced_ids",
    "staged_before",
    "history",
    "upkeep",
}
UNITED = {"compression", "schema", "partition_by", "partition_schema"}
FACTS: dict[str, Any] = {
    "metadata": (("a", "b"),),
    "sources_without_rows": ({"path": "a.csv"},),
    "txns": (Txn("a", 1),),
}


def test_each_field_of_a_manifest_has_its_rule() -> None:
    names = {*Manifest._fields} - OF_PUBLICATION - UNITED
    assert names == {*FACTS}, "give it a value in FACTS, so that the next tests see which changes keep it"


@pytest.mark.parametrize("fact", FACTS)
@pytest.mark.parametrize("name", [name for name in CHANGES if name != "copy"])  # which states that of its source
def test_a_fact_of_a_dataset_stays_unless_all_of_it_is_replaced(name: str, fact: str, old: OldFiles) -> None:
    change = CHANGES[name]
    new = change.next(OLD._replace(**{fact: FACTS[fact]}), OWN, old)
    assert getattr(new, fact) == (getattr(OWN, fact) if change.rules.replaces_all else FACTS[fact])


def test_records_that_are_copied_keep_the_facts_of_their_dataset() -> None:
    """As by salvage; a new field is kept if it does not say how files were written."""
    every = Manifest(**dict.fromkeys(Manifest._fields, "stated")).facts._asdict()  # type: ignore[arg-type]
    left_out = {name for name, value in every.items() if value != "stated"}
    assert left_out == OF_PUBLICATION | {"compression", "partition_by", "sources_without_rows"}, "see _OF_WRITING"
    kept = {name: value for name, value in FACTS.items() if name != "sources_without_rows"}
    stated = OLD._replace(**FACTS, schema=b"s", compression="gzip", partition_by=("day",), staged_before=("0",))
    assert stated.facts == Manifest(**kept, schema=b"s")


@pytest.mark.parametrize("fact", FACTS)
@pytest.mark.parametrize("name", ["whole", "append", "overwrite", "replace folders"])
def test_a_fact_of_a_writing_is_stated(name: str, fact: str, old: OldFiles) -> None:
    new = CHANGES[name].next(OLD, OWN._replace(**{fact: FACTS[fact]}), old)
    assert getattr(new, fact) == FACTS[fact]


@pytest.mark.parametrize(("mode", "grows", "cls"), [
    ("error", False, Whole), ("overwrite", False, Whole), ("error", True, Append), ("append", True, Append),
    ("overwrite", True, Overwrite), ("overwrite_partitions", True, ReplaceFolders),
])  # fmt: skip
def test_the_mode_of_a_call_is_that_of_its_change(mode: str, grows: bool, cls: type[Change]) -> None:
    change = change_of(mode, UNITE, grows=grows)
    assert type(change) is cls
    assert change.rules.mode == mode


@pytest.mark.parametrize("path", [lambda folder: f"{folder}/train@2", lambda folder: f"{folder}/d/"])
def test_a_publication_is_configured_by_its_change_alone(path: Callable[[Path], str], tmp_path: Path) -> None:
    output = Output.resolve(path(tmp_path), shards=None, grows=path(tmp_path).endswith("/"))
    publication = Publication.start(output, change_of("error", UNITE, grows=output.grows))
    attributes = set(vars(publication))
    assert len(attributes) <= MOST_ATTRIBUTES
    published = publication.publish((), Manifest())
    assert set(vars(publication)) == attributes
    assert published.left == {}
    assert Publication.__subclasses__() == []


def test_a_first_append_begins_a_dataset_that_others_may_begin_too(tmp_path: Path) -> None:
    begun = Append(UNITE, ("day",)).first_manifest(OWN._replace(files=()))
    assert (begun.partition_by, begun.is_begun) == (("day",), True)
    tfr.write_tfrecord({"x": [1], "day": [1]}, tmp_path, mode="append", partition_by="day")
    with pytest.raises(ValueError, match="partitioned by \\['day'\\]; pass partition_by="):
        tfr.write_tfrecord({"x": [1], "day": [1]}, tmp_path, mode="append")
