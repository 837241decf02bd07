"""Each name that a writer makes is parsed back, whatever its numbers, and no reader takes it for data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.storage.paths.file_names import (
    claim_name,
    condition_name,
    index_names,
    indexed_file,
    is_claim,
    is_condition,
    is_hidden,
    is_record_file,
    is_sidecar,
    is_temporary,
    journal_name,
    manifest_name,
    parse_journal,
    parse_part,
    parse_shard,
    parse_staged,
    part_name,
    shard_name,
    staged_name,
    stem_of,
    temporary_name,
)

NUMBERS = st.integers(0, 10**12) | st.sampled_from([99_999, 100_000, 999_999, 1_000_000])
IDS = st.binary(min_size=8, max_size=8).map(bytes.hex)
STEMS = st.text(st.characters(exclude_characters="/\0\\", exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(IDS, NUMBERS, st.none() | NUMBERS)
def test_staged_files(id: str, number: int, part: int | None) -> None:
    name = staged_name(id, number, part)
    assert parse_staged(name) == id
    assert parse_part(part_name(name)) == name
    assert is_hidden(name)
    assert is_hidden(part_name(name))


@given(st.sampled_from(["train", "a-b", "part"]), NUMBERS, st.none() | NUMBERS, IDS)
def test_shards(stem: str, index: int, count: int | None, id: str) -> None:
    shard = parse_shard(shard_name(stem, index, count, id) + ".tfrecord.gz")
    assert shard is not None
    assert (shard.stem, shard.index, shard.id) == (stem, index, id)
    if count is None:
        return
    shard = parse_shard(shard_name(stem, index, count) + ".tfrecord")
    assert shard is not None
    assert (shard.stem, shard.index, shard.count, shard.id) == (stem, index, count, "")


@given(
    st.sampled_from(["part", "part-r", "part-m"]), NUMBERS, st.sampled_from(["", ".gz", ".tfrecord", ".tfrecord.gz"])
)
def test_shards_of_hadoop(stem: str, number: int, suffix: str) -> None:
    name = f"{stem}-{number:05d}{suffix}"
    shard = parse_shard(name)
    assert shard is not None
    assert (shard.base, shard.index, shard.count, shard.suffix) == (stem, number, None, suffix)
    assert is_record_file(name)


def test_a_date_is_no_number_of_a_shard() -> None:
    assert parse_shard("train-20240131.tfrecord") is None


SUFFIXES = st.lists(st.sampled_from([".tfrecord", "_tfrecord", ".TFREC", ".gz", ".v2"]), max_size=3).map("".join)


@given(st.sampled_from(["train", "a-b", "part"]), SUFFIXES, SUFFIXES)
def test_the_name_of_a_dataset_is_the_least_exact_of_its_stems(stem: str, before: str, after: str) -> None:
    shard = parse_shard(shard_name(stem + before, 0, 3) + after)
    if shard is not None:
        assert shard.stem == shard.stems[-1]


@given(STEMS, IDS)
def test_files_beside_the_shards(stem: str, id: str) -> None:
    assert stem_of(manifest_name(stem)) == stem
    assert parse_journal(journal_name(stem)) == stem
    assert is_claim(f"bucket/{claim_name(stem, id)}")
    assert is_condition(condition_name(id))
    assert is_temporary(temporary_name(stem))
    for name in (manifest_name(stem), journal_name(stem), condition_name(id), temporary_name(stem)):
        assert is_hidden(name)
        assert not is_record_file(name)


@given(STEMS, NUMBERS, IDS)
def test_indexes(stem: str, index: int, id: str) -> None:
    shard = shard_name(stem, index, None, id) + ".tfrecord"
    for name in index_names(shard):
        assert indexed_file(name) == shard
        assert is_sidecar(name)


@given(IDS, NUMBERS, STEMS)
def test_no_name_is_of_two_kinds(id: str, number: int, stem: str) -> None:
    names = [staged_name(id, number), part_name(staged_name(id, number)), manifest_name(stem), journal_name(stem)]
    names += [condition_name(id), temporary_name(stem), shard_name("train", number, None, id) + ".tfrecord"]
    parsers = (parse_staged, parse_part, stem_of, parse_journal, is_condition, is_temporary, parse_shard)
    for at, name in enumerate(names):
        assert [bool(parse(name)) for parse in parsers] == [at == i for i in range(len(parsers))]


@pytest.mark.parametrize(
    "name", ["_0123456789abcdef-0001.staged", "_0123456789abcdef-000001.staged", "_0123456789abcdef-00001-1.staged"]
)
def test_what_the_maker_does_not_make_is_not_parsed(name: str) -> None:
    assert parse_staged(name) is None


@pytest.mark.fault(55)
def test_numbers_that_no_program_writes_are_no_shard_numbers() -> None:
    """Python refuses to convert so many digits."""
    for name in (f"a-{'1' * 5000}-of-00001", f"a-00001-of-{'1' * 5000}", f"a-{'1' * 5000}-{'0' * 16}.tfrecord"):
        assert parse_shard(name) is None
