"""A dataset copied with its manifest: compare the target, then store missing files and remove surplus ones.

Files wait where no reader takes them for data:

- On a disk under staged names, ``_<id>-00003.staged``, where the id is made of what the source's manifest states.
- In a bucket, a dataset that does not exist yet is stored under its names behind a manifest that readers refuse.
- Into a dataset in a bucket, files with the id of a writing in their names are stored under these, which no reader
  reads before the manifest has them; others are staged, and copied within the store at the end. Where the target had
  shards of this id before, they get another one.

A file is stored only when all of it was checked. So a copy that was killed is continued by those names alone: what is
there, with the size that the manifest states, is not copied again. An error leaves it, too; `tfr clean` removes it.

Tests: tests/store/copies/test_copy_files.py and tests/store/write/test_write_modes.py.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from tfrecord_io.base import for_cli
from tfrecord_io.store.filesystem.interface import Entry, FileSystem
from tfrecord_io.store.filesystem.os_errors import replaced_error
from tfrecord_io.store.filesystem.remote import FsspecFileSystem
from tfrecord_io.store.paths.file_names import FileName, ShardName
from tfrecord_io.store.paths.manifest import Manifest, ids_replaced
from tfrecord_io.store.paths.path_search import record_files
from tfrecord_io.store.paths.resolve_output import Output
from tfrecord_io.store.read.source import ManifestFile
from tfrecord_io.store.write.atomic import open_named
from tfrecord_io.store.write.old_files import OldFiles
from tfrecord_io.store.write.output_file import OutputFile
from tfrecord_io.store.write.publication import Publication, PublishedDataset, place_of
from tfrecord_io.store.write.write_modes import Change, Rules

Listing = Mapping[str, Entry]
"""The files of a directory, and of the folders of columns in it, by their names below it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps that make a target the dataset of a manifest."""

    wanted: Manifest  # the manifest of the target at the end, but for its id
    moved: tuple[int, ...]  # numbers of the files to copy
    stored: tuple[int, ...]  # numbers of files stored by a killed copy
    kept: int  # how many files the target had
    staged: Mapping[str, str]  # by the name of a file, its temporary name
    stale: tuple[str, ...]  # files under names of the dataset, before and after, whose content may be another
    gone: tuple[str, ...]  # files that the target had, and the source has not
    begins: bool  # whether a manifest that readers refuse is written first
    by_store: bool  # whether the store copies the files

    def new(self) -> set[str]:
        """The names of the files that the target gets."""
        return {self.wanted.files[number].path for number in (*self.moved, *self.stored)}


def plan(
    wanted: Manifest, known: Manifest | None, listing: Listing, *, keeps: bool, stages_all: bool, by_store: bool
) -> Plan:
    """Compare a manifest with the manifest and the files of a target.

    With `keeps`, equal files stay. What is copied `by_store` is checked when it has its name already: no copy goes on
    with such files, and none is stored under a name by which another would.
    """
    is_complete = known is not None and known.complete
    before = {file.path: file for file in (() if known is None else known.files)}
    is_begun = not by_store and is_begun_copy(wanted, known)
    writing, kept_files = _id_of(wanted, known, by_store=by_store), 0
    staged: dict[str, str] = {}
    moved: list[int] = []
    stored: list[int] = []
    for number, file in enumerate(wanted.files):
        old = before.get(file.path)
        is_equal = old is not None and _content(old) == _content(file)
        if keeps and is_complete and is_equal and old is not None:
            if old.staged is not None and _has(listing, old.staged, file):
                staged[file.path] = old.staged
            if file.path in staged or _has(listing, file.path, file):
                kept_files += 1
                continue
        has_id = bool(ShardName.id_in(file.path)) and (old is None or is_equal) and not by_store
        name = file.path
        if not has_id if is_complete else stages_all:
            name = staged[file.path] = FileName.staged(writing, number)
        is_stored = name != file.path or is_begun or (has_id and is_complete and old is None)
        if is_stored and not by_store and _has(listing, name, file):
            stored.append(number)
        else:
            moved.append(number)
    names = set(wanted.paths)
    begins = not is_complete and not stages_all
    # A copy by the store overwrites a file with an id in its name, which another copy may have published meanwhile.
    is_right = {wanted.files[number].path for number in stored}
    is_right.update(path for path in names if by_store and ShardName.id_in(path))
    stale = tuple(name for name in dict.fromkeys((*before, *names)) if name in listing and name not in is_right)
    gone = tuple(name for name in before if name not in names)
    return Plan(
        wanted=wanted,
        moved=tuple(moved),
        stored=tuple(stored),
        kept=kept_files,
        staged=staged,
        stale=stale if begins else (),
        gone=gone,
        begins=begins,
        by_store=by_store,
    )


def with_unused_names(wanted: Manifest, known: Manifest | None) -> Manifest:
    """A manifest without the names of shards that were replaced in a target, which a writer may still be removing.

    In a store without locks no condition protects a new shard of such a name, since names with the id of a writing are
    used once. The ids that it gets instead follow from the old ones, so that the next copy finds these files.
    """
    if known is None or not known.replaced_ids:
        return wanted
    named, replaced = set(known.paths), set(known.replaced_ids)

    def find_unused_name(path: str) -> str:
        while path not in named and (id := ShardName.id_in(path)) and id in replaced:
            path = ShardName.with_id(path, _following(id))
        return path

    return wanted._replace(files=tuple(file._replace(path=find_unused_name(file.path)) for file in wanted.files))


def is_begun_copy(wanted: Manifest, known: Manifest | None) -> bool:
    """True if a target has the manifest of a copy of the same files that has begun."""
    return known is not None and not known.complete and _contents(known) == _contents(wanted)


def _unknown_to_copies(manifest: Manifest) -> Manifest:
    """Change the checksums in a manifest, so that no copy resumes from its files."""
    return manifest._replace(files=tuple(file._replace(crc32c=file.crc32c ^ 0xFFFFFFFF) for file in manifest.files))


def _has(listing: Listing, name: str, file: ManifestFile) -> bool:
    return name in listing and listing[name].size in (None, file.bytes)


def _content(file: ManifestFile) -> tuple[str, int, int, int]:
    return file.path, file.records, file.bytes, file.crc32c


def _contents(manifest: Manifest) -> list[tuple[str, int, int, int]]:
    return [_content(file) for file in manifest.files]


def _id_of(wanted: Manifest, known: Manifest | None, *, by_store: bool) -> str:
    """An id for staged names that is the same for equal contents alone.

    It is another one where a writer may still be removing files of the first: those of a copy that it has overtaken.
    """
    text = json.dumps([wanted.dataset, _contents(wanted), by_store]).encode()
    id = hashlib.blake2b(text, digest_size=8).hexdigest()
    names = () if known is None else known.staged_before
    removed = {FileName.parse(name).id for name in names}
    while id in removed:
        id = _following(id)
    return id


def _following(id: str) -> str:
    """Derive the id that replaces an unusable one, equal in each copy."""
    return hashlib.blake2b(id.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Copy(Change):
    """The change that makes a target the dataset of a plan, which was made with the target's manifest, `known`.

    `copy_id` is the id of the copying: the manifest may have that of the target.
    """

    plan: Plan
    known: Manifest | None
    copy_id: str

    @property
    def rules(self) -> Rules:
        return Rules(
            mode="overwrite",
            done=None,  # the caller says what was copied
            overtaken="another writer has written this dataset meanwhile: copy it again",
            completion="tfr.copy(source, target, update=True) completes it",
            is_addition=False,
            replaces_all=True,
            needs_manifest=False,
            needs_lock=False,
            is_planned=True,
        )

    def check(self, manifest: Manifest | None, old: OldFiles) -> None:
        if not self._is_known(manifest):
            raise OSError(errno.EBUSY, self.rules.overtaken, old.place.path)

    def check_schemas(self, manifest: Manifest | None, own: Manifest, path: str) -> None:
        """Do nothing: the files are those of the source."""

    def _is_known(self, manifest: Manifest | None) -> bool:
        """True if the target still has the manifest from the time of the plan."""
        if manifest is None or self.known is None:
            return manifest is self.known
        is_same = (manifest.complete, manifest.files) == (self.known.complete, self.known.files)
        return is_same and (manifest.id == self.known.id or not manifest.complete)

    def incomplete(
        self, manifest: Manifest | None, id: str, old: OldFiles, *, known_to_copies: bool
    ) -> Manifest | None:
        """The manifest with which readers refuse the target; copies resume it if `known_to_copies`.

        None if another writer has replaced the target.
        """
        if not self._is_known(manifest) and (manifest is None or manifest.id != id):
            return None
        ids = ids_replaced(manifest, self.plan.wanted, is_conditional=old.place.is_conditional)
        left = self._left_in(manifest)
        new = self.plan.wanted._replace(id=id, complete=False, replaces=left, replaced_ids=ids)
        return new if known_to_copies else _unknown_to_copies(new)

    def next(self, manifest: Manifest | None, own: Manifest, old: OldFiles) -> Manifest | None:
        is_still = self._is_known(manifest)
        if self.plan.begins:
            is_still = manifest is not None and manifest.id == own.id
        if not is_still:
            return None
        new = self.final(own.id)
        return new._replace(replaces=tuple(dict.fromkeys((*new.replaces, *self._left_in(manifest)))))

    def final(self, id: str) -> Manifest:
        """The manifest of the target at the end, without the notes for other writers."""
        files = tuple(file._replace(staged=self.plan.staged.get(file.path)) for file in self.plan.wanted.files)
        before = () if self.known is None else self.known.replaces
        gone = (name for name in self.plan.gone if not ShardName.id_in(name))
        return self.plan.wanted._replace(id=id, files=files, replaces=(*before, *gone))

    def _left_in(self, manifest: Manifest | None) -> tuple[str, ...]:
        """Files to remove, as a manifest states: an overtaken writer may have added some."""
        names = set(self.plan.wanted.paths)
        return () if manifest is None else tuple(name for name in manifest.replaces if name not in names)

    def is_in(self, manifest: Manifest, id: str, *, before: Manifest | None = None) -> bool:
        """True if a manifest has the files of the copy, and otherwise only appended ones."""
        is_named = {*_contents(self.plan.wanted)} <= {*_contents(manifest)}
        return manifest.complete and is_named and not {*self.plan.gone} & {*manifest.paths}

    def is_replaced_in(self, manifest: Manifest, id: str) -> bool:
        return self.copy_id in manifest.replaced_ids

    def id_to_state(self, own: Manifest, old: OldFiles) -> str | None:
        return self.copy_id if old.place.is_conditional else None


class CopiedDataset:
    """A dataset being copied to a directory, by a plan made with the target's manifest.

    It is used in this order: `begin`, `open_file` and store each file that is `moved`, `publish`, `warn_of_left`; after
    an error, `discard`.
    """

    def __init__(self, fs: FileSystem, directory: str, known: Manifest | None, planned: Plan) -> None:
        self.plan, self._known, id = planned, known, ShardName.new_id()
        stem = planned.wanted.dataset
        shown = fs.display_path(directory)
        output = Output(shown, True, None, base=f"{shown}{stem}", suffix=".tfrecord", grows=True)
        self._change = Copy(planned, known, id)
        if known is not None and known.complete and not planned.gone and planned.kept == len(known.files):
            id = known.id  # files are only added: readers that have begun go on
        self._id, self._place = id, place_of(fs, directory, stem)
        self._publication = Publication(output, self._place, self._change, id, keeps_stored=True)
        self._published: PublishedDataset | None = None

    def begin(self) -> None:
        """Hide the files from readers until the dataset is published.

        Only who has written the manifest removes files; a copy that goes on finds by another one that this was done.
        """
        if not self.plan.begins:
            return
        if self.plan.stale:
            self._put_incomplete(known_to_copies=False)
            self._publication.remove_stale(self.plan.stale)
        if not (self.plan.stale and self.plan.by_store):
            self._put_incomplete(known_to_copies=not self.plan.by_store)

    def _put_incomplete(self, *, known_to_copies: bool) -> None:
        """Replace the manifest by an incomplete one, which readers refuse; copies resume it if `known_to_copies`."""
        old = self._publication.old
        self._publication.begin(
            lambda manifest: self._change.incomplete(manifest, self._id, old, known_to_copies=known_to_copies)
        )

    def target_of(self, number: int) -> str:
        """The name in the filesystem under which a file is stored."""
        path = self.plan.wanted.files[number].path
        return self._place.directory + self.plan.staged.get(path, path)

    def is_exclusive(self, number: int) -> bool:
        """True if a file is stored only under a free name, as another writer may choose the same one."""
        path = self.plan.wanted.files[number].path
        return self.plan.begins and path not in self.plan.staged and self._publication.old.is_numbered(path)

    def make_room(self, number: int) -> None:
        """Remove a stale file left by a writer that lost the race."""
        self._publication.make_room(self.plan.wanted.files[number].path)

    def overtaken_error(self) -> OSError:
        """The error for a file that another writer was faster to store."""
        return self._publication.overtaken_error()

    def open_file(self, number: int, upload_bytes: int) -> OutputFile:
        """Open a file to be stored; it takes about so many bytes of memory."""
        path = self.plan.wanted.files[number].path
        if not isinstance(self._place.fs, FsspecFileSystem):
            return self._place.open(path, self.plan.staged.get(path), [path])
        return open_named(
            self._place.fs,
            self.target_of(number),
            exclusive=self.is_exclusive(number),
            path=self._place.fs.display_path(self._place.directory + path),
            looks=False,
            upload_bytes=upload_bytes,
        )

    @property
    def changes(self) -> bool:
        """True if the manifest of the target is to be replaced."""
        known, plan = self._known, self.plan
        if known is None or not known.complete or plan.moved or plan.stored or plan.gone or plan.staged:
            return True
        ids = ids_replaced(known, plan.wanted, is_conditional=self._place.is_conditional)
        return self._change.final(known.id)._replace(replaced_ids=ids) != known

    def publish(self, listing: Listing) -> None:
        """Replace the manifest, then rename staged files and remove old ones; `listing` is the plan's."""
        if not self.changes:
            return
        names = [index for name in sorted(self.plan.new()) for index in FileName.indexes(name) if index in listing]
        self._publication.old.remove(names)
        self._published = self._publication.publish((), Manifest())

    def warn_of_left(self) -> None:
        """Warn of files that should have been removed, when nothing else is to be done."""
        if self._published is not None:
            self._published.warn_of_left()

    def discard(self, error: BaseException) -> None:
        """Leave stored files to a copy that resumes, or, under numbered names, to the faster writer.

        The error after which nothing else is done says that the copy is published, if it is.
        """
        if self._published is not None:
            self._published.remark_published(error)
        numbered = [number for number in self.plan.moved if self.is_exclusive(number)]
        self._publication.leave([self.plan.wanted.files[number].path for number in numbered])


def check_may_write(
    fs: FileSystem, directory: str, wanted: Manifest, known: Manifest | None, listing: Listing, *, replaces: bool
) -> None:
    """Raise FileExistsError if a target has another dataset that is not to be replaced, or files of none.

    ReplacedError if another writer has begun a dataset of this name since the target was listed.
    """
    manifest = directory + FileName.manifest(wanted.dataset)
    path = fs.display_path(manifest)
    if known is not None:
        # A copy of the same files, resumable or not.
        is_own = is_begun_copy(wanted, known) or is_begun_copy(_unknown_to_copies(wanted), known)
        if replaces or is_own:
            return
        reason = "a dataset of this name exists"
        hint = "update=True copies what differs, mode='overwrite' replaces it"
        hint_cli = "--update copies what differs, --mode overwrite replaces it"
        if not known.complete:
            reason = "an incomplete dataset of this name exists, whose writer died or is at work"
            hint, hint_cli = "mode='overwrite' replaces it", "--mode overwrite replaces it"
        raise for_cli(FileExistsError(errno.EEXIST, f"{reason}; {hint}", path), f"{reason}; {hint_cli}")
    for entry in record_files(listing.values()):
        shard = ShardName.parse(entry.basename)
        is_unpublished = shard is not None and bool(shard.id)
        is_read = wanted.dataset == FileName.DIRECTORY_STEM or (shard is not None and shard.stem == wanted.dataset)
        if is_read and not is_unpublished:
            if fs.entries([manifest], are_files=True)[0] is not None:
                raise replaced_error(path, "dataset")
            mixed = "the directory has TFRecord files of no dataset with a manifest, which readers would mix with the "
            mixed += "copy; choose another directory"
            raise FileExistsError(errno.EEXIST, mixed, fs.display_path(entry.name))
