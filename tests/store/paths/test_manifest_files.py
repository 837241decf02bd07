"""Files of a manifest as columns are the same as one by one, and nothing is accepted that single entries refuse."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store.paths import manifest_files
from tfrecord_io.store.paths.manifest import Manifest, format_manifest, parse_manifest
from tfrecord_io.store.paths.manifest_files import ManifestColumns
from tfrecord_io.store.paths.manifest_parts import pack, unpack
from tfrecord_io.store.read.source import ManifestFile

PATH = "data/_MANIFEST.json"
ID = "0123456789abcdef"
NAMES = [
    *(f"day={day}/part-{number:05d}-of-00003.tfrecord" for day in (3, 10, 1) for number in range(3)),
    *(f"day={day}/part-{number:05d}-{ID}.tfrecord.gz" for day in (1, 2) for number in (7, 123456)),
    *("day=a b/part-00001.tfrecord", "day=é%20/part-00002.tfrecord", "day=3/other.tfrecord", "day=3/x-1-2.tfrecord"),
]
FILES = tuple(ManifestFile(name, number, 100 + number, 2**32 - 1 - number) for number, name in enumerate(NAMES))
MANIFEST = Manifest("part", ID, FILES, None, b"schema", partition_by=("day",), partition_schema=b"types")


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_files.SIZES, "many", 2)
    monkeypatch.setattr(manifest_files.SIZES, "large_bytes", 0)


def columns(files: Sequence[ManifestFile] = FILES) -> ManifestColumns:
    made = ManifestColumns.of(tuple(files))
    assert made is not None
    return made


def test_columns_are_their_files() -> None:
    made = columns()
    assert len(made) == len(FILES)
    assert tuple(made) == FILES
    assert [made[at] for at in range(-len(FILES), len(FILES))] == [*FILES, *FILES]
    assert tuple(made[2:9:3]) == FILES[2:9:3]
    assert made == FILES == made == columns()
    assert made != FILES[1:]
    assert made != columns(FILES[::-1])
    with pytest.raises(IndexError):
        made[len(FILES)]


def test_text_is_that_of_single_files() -> None:
    text = format_manifest(MANIFEST)
    again = parse_manifest(text, PATH)
    assert again is not None
    assert isinstance(again.files, ManifestColumns)
    assert again == MANIFEST
    assert format_manifest(again) == text


def test_facts_are_those_of_single_files() -> None:
    one_by_one, many = MANIFEST, MANIFEST._replace(files=columns())
    for name in ("paths", "records", "bytes", "staged", "largest_number"):
        assert getattr(many, name) == getattr(one_by_one, name), name
    assert many.has_shards_of(ID)
    assert not many.has_shards_of(ID[::-1])
    for kept in (FILES[:4], FILES[3:], FILES[::2], (*FILES, ManifestFile("day=7/part-00009.tfrecord", 1, 1, 1))):
        expected = one_by_one.paths_without(one_by_one._replace(files=kept))
        for files in (columns(kept), kept):
            assert many.paths_without(many._replace(files=files)) == expected
    folders, numbers = columns().folders
    assert [folders[number] for number in numbers] == [name.rpartition("/")[0] for name in NAMES]
    assert len(set(folders)) == len(folders)
    in_root = columns([ManifestFile("part-00000.tfrecord", 1, 1, 1), ManifestFile("a=1/part-00000.tfrecord", 1, 1, 1)])
    assert in_root.folders[0] == ["", "a=1"]


@pytest.mark.parametrize("joined", [(), ({"path": "a", "size": 1},)])
def test_files_are_replaced_in_their_places(joined: Any) -> None:
    new = ManifestFile("day=3/part-00007-fedcba9876543210.tfrecord", 5, 6, 7, joined=joined)
    for gone, added in (
        ([], []),
        ([3], []),
        ([0, 4, 16], [(4, new)]),
        ([2, 1], [(1, new)]),
        ([*range(17)], [(9, new)]),
    ):
        places = [dict(added).get(number, None if number in gone else file) for number, file in enumerate(FILES)]
        expected = tuple(file for file in places if file is not None)
        for files in (FILES, columns()):
            left = MANIFEST._replace(files=MANIFEST._replace(files=files).files_after(gone, added))
            assert left.files == expected
            assert left.folders == {path.rpartition("/")[0] for path in left.paths}


def test_numbers_of_names() -> None:
    paths = [NAMES[5], "day=1/none", NAMES[0]]
    assert MANIFEST.numbers_of(paths) == MANIFEST._replace(files=columns()).numbers_of(paths) == [5, None, 0]
    assert MANIFEST._replace(files=columns()).numbers_of([]) == []


def test_files_are_added_and_taken() -> None:
    added = (ManifestFile("day=4/part-00009.tfrecord", 1, 1, 1),)
    assert columns().then(added) == (*FILES, *added)
    assert isinstance(columns().then(added), ManifestColumns)
    assert columns().then(()) == FILES
    staged = (added[0]._replace(staged=f"_{ID}-00000.staged"),)
    assert columns().then(staged) == (*FILES, *staged)
    quoted = (added[0]._replace(path='day="/part-00009.tfrecord'),)
    assert columns().then(quoted) == (*FILES, *quoted)
    assert ManifestColumns.of(staged) is ManifestColumns.of(quoted) is None


def document(**changes: Any) -> bytes:
    made = json.loads(format_manifest(MANIFEST))
    files = changes.pop("files", made.pop("files"))
    head, lines = json.dumps({**made, **changes}), ",\n".join("  " + json.dumps(f, ensure_ascii=False) for f in files)
    return f'{head[:-1]}, "files": [\n{lines}\n]}}\n'.encode()


def entries(**changes: Any) -> list[dict[str, Any]]:
    made = json.loads(format_manifest(MANIFEST))["files"]
    return [*made[:5], {**made[5], **changes}, *made[6:]]


WRONG: list[Any] = [
    *(entries(path=path) for path in ("../part-00000.tfrecord", "/etc/part-00000.tfrecord", "day=1/../part-00000")),
    *(entries(path=path) for path in ("day=1/train.json", "x=1/part-00000.tfrecord", "part-00000\0.tfrecord", "", 7)),
    *(entries(path=path) for path in ("day=1/a\\part-00000.tfrecord", "_MANIFEST.json", "day=1\\part-00000.tfrecord")),
    entries(path=NAMES[0]),
    *(entries(records=value) for value in (-1, 5.0, True, 2**63, "5", None)),
    *(entries(bytes=value) for value in (-1, None, 2**64)),
    *(entries(crc32c=value) for value in (7, "0000000G", "000000000", "ABCDEF00", None)),
    [*entries(), 5],
    [*entries(), {"path": "day=1/part-00077.tfrecord"}],
]


@pytest.mark.parametrize("files", WRONG, ids=lambda files: json.dumps(files[5:6] + files[-1:])[:80])
def test_what_single_entries_refuse_is_refused(files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is that of a manifest of few files."""
    text = document(files=files)
    with pytest.raises(CorruptRecordError) as many:
        parse_manifest(text, PATH)
    monkeypatch.setattr(manifest_files.SIZES, "many", 1000)
    with pytest.raises(CorruptRecordError) as one_by_one:
        parse_manifest(text, PATH)
    assert str(many.value) == str(one_by_one.value)


def test_entries_with_more_facts_are_parsed_one_by_one() -> None:
    parsed = parse_manifest(document(files=entries(source={"path": "a", "size": 5})), PATH)
    assert parsed is not None
    assert isinstance(parsed.files, tuple)
    assert parsed.files[5].source == {"path": "a", "size": 5}


@pytest.mark.parametrize("folder", ["day=\U0001f600", "day=%5C", "day=~", "day=a b", "day=__HIVE_DEFAULT_PARTITION__"])
def test_unusual_names_are_read_back(folder: str) -> None:
    manifest = MANIFEST._replace(files=(*FILES, ManifestFile(f"{folder}/part-00000.tfrecord", 1, 1, 1)))
    assert parse_manifest(format_manifest(manifest), PATH) == manifest


def test_text_that_is_cut_is_refused() -> None:
    text = format_manifest(MANIFEST)
    for end in (3, 5, 30, len(text) // 2):
        with pytest.raises(CorruptRecordError):
            parse_manifest(text[:-end], PATH)


def in_form(numbers: list[int], form: str) -> ManifestColumns:
    """Some files as columns: of whole paths, as in a part, or those that are left of others."""
    if form == "left":
        return unpack(*reversed(pack(columns(), "part")), path=PATH).take(np.array(numbers, np.int64))
    files = columns([FILES[number] for number in numbers]) if numbers else columns().take(np.empty(0, np.int64))
    return unpack(*reversed(pack(files, "part")), path=PATH) if form == "part" and numbers else files


some_files = st.lists(st.integers(0, len(FILES) - 1), unique=True)
forms = st.sampled_from(["whole", "part", "left"])


@given(
    own=some_files | st.just([*range(len(FILES))]), others=some_files, own_form=forms, other_form=forms, data=st.data()
)
def test_files_among_others(own: list[int], others: list[int], own_form: str, other_form: str, data: Any) -> None:
    if data.draw(st.booleans()):  # as of a part that is written again
        others = [number for number in own if number not in others[:3]]
    files, other_files = in_form(own, own_form), in_form(others, other_form)
    left = files.leave_out(other_files)
    assert tuple(left) == tuple(FILES[number] for number in own if number not in others)
    names = [NAMES[number] for number in others]
    assert files.numbers_of([*names, "day=3/none"]) == [
        *(own.index(number) if number in own else None for number in others),
        None,
    ]
    assert not files.has_one_twice
    folders, numbers = files.folders
    assert [folders[number] for number in numbers] == [NAMES[number].rpartition("/")[0] for number in own]
    assert files.folder_names == list(dict.fromkeys(NAMES[number].rpartition("/")[0] for number in own))
    if own:
        twice = ManifestColumns.concat([files, files.take(np.array([len(own) - 1]))])
        assert twice.has_one_twice
