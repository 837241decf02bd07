"""Each name that a writer makes is parsed back, whatever its numbers, and no reader takes it for data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.base.registry import Registry
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, Kind, ShardName
from tfrecord_io.store.write.leftovers import LEFT

NUMBERS = st.integers(0, 10**12) | st.sampled_from([99_999, 100_000, 999_999, 1_000_000])
IDS = st.binary(min_size=8, max_size=8).map(bytes.hex)
STEMS = st.text(st.characters(exclude_characters="/\0\\", exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(IDS, NUMBERS, st.none() | NUMBERS)
def test_staged_files(id: str, number: int, part: int | None) -> None:
    name = FileName.staged(id, number, part)
    staged, described = FileName.parse(name), FileName.parse(FileName.part(name))
    assert (staged.kind, staged.id, staged.dataset) == (Kind.STAGED, id, None)
    assert (described.kind, described.id, described.of) == (Kind.PART, id, name)
    assert staged.is_hidden
    assert described.is_hidden


@given(st.sampled_from(["train", "a-b", "part"]), NUMBERS, st.none() | NUMBERS, IDS)
def test_shards(stem: str, index: int, count: int | None, id: str) -> None:
    shard = ShardName.parse(ShardName.make(stem, index, count, id) + ".tfrecord.gz")
    assert shard is not None
    assert (shard.stem, shard.index, shard.id) == (stem, index, id)
    if count is None:
        return
    shard = ShardName.parse(ShardName.make(stem, index, count) + ".tfrecord")
    assert shard is not None
    assert (shard.stem, shard.index, shard.count, shard.id) == (stem, index, count, "")


@given(
    st.sampled_from(["part", "part-r", "part-m"]), NUMBERS, st.sampled_from(["", ".gz", ".tfrecord", ".tfrecord.gz"])
)
def test_shards_of_hadoop(stem: str, number: int, suffix: str) -> None:
    name = f"{stem}-{number:05d}{suffix}"
    shard = ShardName.parse(name)
    assert shard is not None
    assert (shard.base, shard.index, shard.count, shard.suffix) == (stem, number, None, suffix)
    assert FileName.parse(name).kind is Kind.RECORDS


def test_a_date_is_no_number_of_a_shard() -> None:
    assert ShardName.parse("train-20240131.tfrecord") is None


SUFFIXES = st.lists(st.sampled_from([".tfrecord", "_tfrecord", ".TFREC", ".gz", ".v2"]), max_size=3).map("".join)


@given(st.sampled_from(["train", "a-b", "part"]), SUFFIXES, SUFFIXES)
def test_the_name_of_a_dataset_is_the_least_exact_of_its_stems(stem: str, before: str, after: str) -> None:
    shard = ShardName.parse(ShardName.make(stem + before, 0, 3) + after)
    if shard is not None:
        assert shard.stem == shard.stems[-1]


@given(STEMS, IDS)
def test_files_beside_the_shards(stem: str, id: str) -> None:
    manifest, journal = FileName.parse(FileName.manifest(stem)), FileName.parse(FileName.journal(stem))
    assert (manifest.kind, manifest.dataset, manifest.id) == (Kind.MANIFEST, stem, "")
    assert (journal.kind, journal.dataset, journal.id) == (Kind.JOURNAL, stem, "")
    schema = FileName.parse(FileName.saved_schema(stem))
    assert (schema.kind, schema.dataset, schema.id, schema.is_of_tool) == (Kind.SCHEMA, stem, "", True)
    claim, condition = FileName.of_path(f"bucket/{FileName.claim(stem, id)}"), FileName.parse(FileName.condition(id))
    assert (claim.kind, claim.dataset, claim.id) == (Kind.CLAIM, stem, id)
    assert (condition.kind, condition.dataset, condition.id) == (Kind.CONDITION, None, id)
    temporary = FileName.parse(FileName.temporary(stem))
    assert temporary.kind is Kind.TEMPORARY
    assert all(file.is_hidden for file in (manifest, journal, schema, condition, temporary))


def test_a_claim_is_one_in_a_folder_of_claims_alone() -> None:
    for path in ("0123456789abcdef.claim", "d/0123456789abcdef.claim", "_APPEND-a/d/0123456789abcdef.claim"):
        assert FileName.of_path(path).kind is Kind.OTHER
    assert FileName.of_path("_APPEND-a/x.claim").kind is Kind.OTHER


@given(STEMS, NUMBERS, IDS)
def test_indexes(stem: str, index: int, id: str) -> None:
    shard = ShardName.make(stem, index, None, id) + ".tfrecord"
    for name in FileName.indexes(shard):
        file = FileName.parse(name)
        assert (file.kind, file.of, file.id) == (Kind.INDEX, shard, id)
        assert file.dataset == FileName.parse(shard).dataset
        assert file.is_sidecar


@dataclass(frozen=True)
class Named:
    """A name of a kind, of the dataset "train" if it says so, and what others do with such files."""

    path: str
    says_dataset: bool
    says_id: bool
    is_of_tool: bool  # a glob does not mean it
    is_left: bool  # `clean` removes it, whatever a manifest says


ID = "0123456789abcdef"
STAGED = FileName.staged(ID, 3)
KINDS = {
    Kind.TEMPORARY: Named(FileName.temporary("train"), False, False, True, True),
    Kind.STAGED: Named(STAGED, False, True, True, False),
    Kind.PART: Named(FileName.part(STAGED), False, True, True, True),
    Kind.CONDITION: Named(FileName.condition(ID), False, True, False, True),
    Kind.JOURNAL: Named(FileName.journal("train"), True, False, True, True),
    Kind.MANIFEST: Named(FileName.manifest("train"), True, False, True, False),
    Kind.MANIFEST_PART: Named(FileName.manifest_part("train", ID), True, True, True, False),
    Kind.SCHEMA: Named(FileName.saved_schema("train"), True, False, True, False),
    Kind.CLAIM: Named(FileName.claim("train", ID), True, True, False, True),
    Kind.INDEX: Named(f"train-00008-{ID}.tfrecord.index", True, True, False, False),
    Kind.HIDDEN: Named("_SUCCESS", False, False, True, False),
    Kind.SIDECAR: Named("train.json", False, False, False, False),
    Kind.RECORDS: Named(f"train-00008-{ID}.tfrecord", True, True, False, False),
    Kind.OTHER: Named("train", False, False, False, False),
}


def test_each_kind_answers_all_questions() -> None:
    missing = [kind.name for kind in Kind if kind not in KINDS]
    assert not missing, f"add rows to KINDS for {', '.join(missing)}; a writer's file has a maker in FileName"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_the_name_of_a_kind_says(kind: Kind) -> None:
    named = KINDS[kind]
    file = FileName.of_path(named.path)
    assert file.kind is kind
    assert file.dataset == ("train" if named.says_dataset else None), "FileName.dataset"
    assert file.id == (ID if named.says_id else ""), "_WITH_ID in store/paths/file_names.py"
    assert file.is_of_tool == named.is_of_tool, "_OF_TOOL in store/paths/file_names.py"
    assert (kind in LEFT) == named.is_left, "LEFT in store/write/leftovers.py"


@given(IDS, NUMBERS, STEMS)
def test_no_name_is_of_two_kinds(id: str, number: int, stem: str) -> None:
    staged = FileName.staged(id, number)
    names = [staged, FileName.part(staged), FileName.manifest(stem), FileName.journal(stem)]
    names += [FileName.condition(id), FileName.temporary(stem), ShardName.make("train", number, None, id) + ".tfrecord"]
    kinds = [FileName.parse(name).kind for name in names]
    assert kinds == [Kind.STAGED, Kind.PART, Kind.MANIFEST, Kind.JOURNAL, Kind.CONDITION, Kind.TEMPORARY, Kind.RECORDS]
    assert [FileName.parse(name).shard is not None for name in names] == [False] * 6 + [True]


BASES = ["train", "_x", ".x", "part", "a-b", "model.data", "_MANIFEST", "_SCHEMA", "_RESUME-a"]
BASES += ["_0123456789abcdef", "a.gz"]
NUMBERS_IN_NAMES = ["", "-00000", "-00000-of-00001", "-00000-0123456789abcdef", "-1"]
ENDS = ["", *FileName.SIDECAR_SUFFIXES, *Registry.WRITTEN_SUFFIXES, ".tfrecord.gz"]
ENDS += [".staged", ".claim", ".condition", ".tmp", ".INDEX"]


@pytest.mark.parametrize("base", BASES)
def test_a_name_is_of_the_first_kind_that_it_has_the_form_of(base: str) -> None:
    """Names of users can have several forms; the parts of a name do not depend on its kind."""
    of_writers = {Kind.TEMPORARY, Kind.STAGED, Kind.PART, Kind.CONDITION, Kind.JOURNAL, Kind.MANIFEST, Kind.CLAIM}
    of_writers.add(Kind.SCHEMA)
    for name in (base + number + end for number in NUMBERS_IN_NAMES for end in ENDS):
        file = FileName.parse(name)
        assert file.is_hidden == name.startswith(("_", "."))
        assert file.is_sidecar == name.lower().endswith(FileName.SIDECAR_SUFFIXES)
        parsed = ShardName.parse(name)
        assert all(getattr(file.shard, fact, None) == getattr(parsed, fact, None) for fact in ShardName.__slots__)
        if file.kind not in of_writers:
            is_index = name.endswith((".index", ".column_index"))
            others = (Kind.INDEX, is_index), (Kind.HIDDEN, file.is_hidden), (Kind.SIDECAR, file.is_sidecar)
            first = next((kind for kind, has_form in others if has_form), None)
            assert (file.kind if first is None else first) is file.kind
            assert first is not None or file.kind in (Kind.RECORDS, Kind.OTHER)
        else:
            assert file.is_hidden
            assert not name.endswith((".index", ".column_index"))


@pytest.mark.parametrize("path", ["p=1/part-00000-of-00001", "/a", "a/", "_APPEND-a/0123456789abcdef.claim"])
@pytest.mark.parametrize("noun", [FileName, ShardName, ColumnFolder])
def test_a_path_is_no_name(noun: Any, path: str) -> None:
    with pytest.raises(ValueError, match="is a path"):
        noun.parse(path)


SHARD_BASES = ["train", "a-b", "part", "part-r", "a-1-of", "a-1-of-2.b", "a-00001", "a.gz", "a-00000-0123456789abcdef"]
SHARD_NUMBERS = ["", "-00000", "-00001", "-1", "-123456", "-012345", "-00000-of-00001", "-00001-of-3", "-123456-of-7"]
SHARD_NUMBERS += ["-00000-0123456789abcdef", "-00001-1123456789012345", "-00000-of-0123456789abcdef"]
SHARD_ENDS = ["", ".gz", ".tfrecord", ".TFRecord", ".tfrecord.gz", ".tfrecord.zst", ".rec", ".v2", "-x", ".a-00000"]
SHARD_NAMES = [base + number + end for base in SHARD_BASES for number in SHARD_NUMBERS for end in SHARD_ENDS]


@pytest.mark.parametrize("first", [name for name in SHARD_NAMES if ShardName.parse(name) is not None][::3])
def test_names_that_differ_in_their_numbers_alone_are_of_one_dataset(first: str) -> None:
    """So readers of a manifest need not parse each."""
    shard = ShardName.parse(first)
    assert shard is not None
    assert shard.number_in(first) == shard.index
    for name in filter(shard.is_like, SHARD_NAMES):
        other = ShardName.parse(name)
        assert other is not None
        assert shard.number_in(name) == other.index
        assert (other.stem, other.suffix, bool(other.id)) == (shard.stem, shard.suffix, bool(shard.id))


@given(st.sampled_from(["train", "a-b", "part"]), NUMBERS, NUMBERS, st.none() | NUMBERS, IDS)
def test_written_shards_differ_in_their_numbers_alone(
    stem: str, first: int, second: int, count: int | None, id: str
) -> None:
    """Those without a count and with more than five digits are parsed, as they may be dates."""
    for made_id in ("", id):
        shard = ShardName.parse(ShardName.make(stem, first, count, made_id) + ".tfrecord")
        if shard is not None and (made_id or count is not None or second < 100_000):
            assert shard.is_like(ShardName.make(stem, second, count, made_id) + ".tfrecord")


@pytest.mark.parametrize(
    ("name", "is_of_tool"),
    [("_SUCCESS", True), (".x", True), ("_metadata", True), ("_MANIFEST-a.csv", True), ("_a.csv", False)],
)
def test_names_that_a_glob_does_not_mean(name: str, is_of_tool: bool) -> None:
    assert FileName.parse(name).is_of_tool == is_of_tool


@pytest.mark.parametrize(
    "name", ["_0123456789abcdef-0001.staged", "_0123456789abcdef-000001.staged", "_0123456789abcdef-00001-1.staged"]
)
def test_what_the_maker_does_not_make_is_not_parsed(name: str) -> None:
    assert FileName.parse(name).kind is Kind.HIDDEN


@pytest.mark.fault(55)
def test_numbers_that_no_program_writes_are_no_shard_numbers() -> None:
    """Python refuses to convert so many digits."""
    for name in (f"a-{'1' * 5000}-of-00001", f"a-00001-of-{'1' * 5000}", f"a-{'1' * 5000}-{'0' * 16}.tfrecord"):
        assert ShardName.parse(name) is None
