"""The changes of a dataset: each class makes the next manifest for a `Publication`, and recognises it later.

`tfrecord_io.store.write.publication` stores shards, replaces the manifest in one step, and settles what follows from
it. The files, schema and other facts of the next manifest are decided here, from the manifest that is there and `own`,
the manifest of this writing alone: a fact of a writing is a field of `own`.
"""

from __future__ import annotations

import errno
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from tfrecord_io.base import for_cli
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, ShardName
from tfrecord_io.store.paths.folder_bounds import SoughtFolders
from tfrecord_io.store.paths.manifest import Manifest, Txn
from tfrecord_io.store.paths.manifest_files import ManifestFiles, all_files
from tfrecord_io.store.write.old_files import OldFiles

if TYPE_CHECKING:
    from tfrecord_io.store.paths.history import History

OVERTAKEN = "another writer has written this dataset at the same time; write it again"
_WRITE_AGAIN = "writing it again completes it"


class Unite(Protocol):
    """How to unite the schema of a dataset with the schema of added rows, and read the names of its folders."""

    def __call__(
        self, old: bytes | None, new: bytes | None, path: str, *, without_rows: bool = False, adds_rows: bool = True
    ) -> bytes | None:
        """The schema of both; SchemaError if they contradict each other. The dataset may be `without_rows` yet."""

    def folder_values(self, texts: Iterable[tuple[str, str | None]], schema: bytes | None) -> Set[object]:
        """The columns and values that names of folders state, by the schema of the columns of folders."""

    def replaced_values(self, own: bytes, schema: bytes | None) -> Set[object]:
        """The values of columns whose folders the caller replaces, of which there may be none.

        `own` and `schema` are the schemas of the columns of folders, of what is written and of the dataset.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Answers of a change to the questions of a publication. Without defaults: a new change answers each of them."""

    mode: str  # the name by which callers ask for the change
    done: str | None  # the verb of the log; None if the caller logs the change
    overtaken: str  # the message if another writer was faster
    completion: str  # what to do if the dataset is published, and something is left
    is_addition: bool  # rows that are written again would be there twice
    replaces_all: bool  # nothing of the dataset stays, so that a damaged or begun one may be replaced
    needs_manifest: bool  # the dataset is changed: files of its name without a manifest are an error
    needs_lock: bool  # in a directory without locks, two writers at a time could lose shards of each other
    is_planned: bool  # the caller has looked at the files, and written the manifest that the shards need before


class Change(ABC):
    """The change that a writing makes to a dataset, and so to its manifest; can be pickled."""

    __slots__ = ()

    @property
    @abstractmethod
    def rules(self) -> Rules:
        """The answers to the questions of a publication."""

    @abstractmethod
    def check(self, manifest: Manifest | None, old: OldFiles) -> None:
        """Raise an error if the dataset with this manifest, or without one, must not be changed."""

    @abstractmethod
    def check_schemas(self, manifest: Manifest | None, own: Manifest, path: str) -> None:
        """Raise SchemaError if rows of the schemas of `own` cannot be written; `manifest` is the dataset's."""

    def first_manifest(self, own: Manifest) -> Manifest:
        """The first manifest of a dataset that grows, from the manifest of this writing, still without files."""
        return own

    @abstractmethod
    def next(self, manifest: Manifest | None, own: Manifest, old: OldFiles) -> Manifest | None:
        """The manifest that follows `manifest`: `manifest` itself if nothing is to be written.

        None if another writer has replaced what is changed, so that this writing ends.
        """

    @abstractmethod
    def is_in(self, manifest: Manifest, id: str, *, before: Manifest | None = None) -> bool:
        """True if a manifest has everything that the writing of this id adds; one `before` has nothing of it."""

    @abstractmethod
    def is_replaced_in(self, manifest: Manifest, id: str) -> bool:
        """True if a manifest has replaced that of the writing of this id, which was published then."""

    @abstractmethod
    def id_to_state(self, own: Manifest, old: OldFiles) -> str | None:
        """The id that the manifest must state so that later manifests are recognised: no file's name has it."""

    def exists_error(self, name: str, old: OldFiles) -> FileExistsError:
        """The error for a dataset that has the file `name`, and is not to be written."""
        text = "a sharded dataset of this name exists; mode='overwrite' replaces it"
        error = FileExistsError(errno.EEXIST, text, old.path_of(name))
        return for_cli(error, "a sharded dataset of this name exists; --mode overwrite replaces it")


_WHOLE = Rules(
    mode="error",
    done="replaced",
    overtaken=OVERTAKEN,
    completion=_WRITE_AGAIN,
    is_addition=False,
    replaces_all=False,
    needs_manifest=False,
    needs_lock=False,
    is_planned=False,
)
_WHOLE_OVERWRITE = replace(_WHOLE, mode="overwrite", replaces_all=True)


@dataclass(frozen=True, slots=True)
class Whole(Change):
    """All shards of a dataset whose names state how many there are; with `overwrite`, they replace its old ones."""

    overwrite: bool

    @property
    def rules(self) -> Rules:
        return _WHOLE_OVERWRITE if self.overwrite else _WHOLE

    def check(self, manifest: Manifest | None, old: OldFiles) -> None:
        """Do nothing: the publication looks at the files."""

    def check_schemas(self, manifest: Manifest | None, own: Manifest, path: str) -> None:
        """Do nothing: nothing of the dataset stays."""

    def next(self, manifest: Manifest | None, own: Manifest, old: OldFiles) -> Manifest | None:
        is_own = manifest is not None and manifest.id == own.id
        if not self.overwrite and manifest is not None and not is_own:
            raise self.exists_error(FileName.manifest(old.stem), old)
        names, named = set(own.paths), dict.fromkeys(() if manifest is None else manifest.paths)
        # A shard with an id that no manifest names is one that another writer is about to add.
        gone = [name for name in old.existing if old.is_shard(name) and (name in named or not ShardName.id_in(name))]
        if manifest is not None and not is_own:  # its writer may be giving these names now
            gone += [*named, *manifest.replaces]
        return own._replace(replaces=tuple(name for name in dict.fromkeys(gone) if name not in names))

    def is_in(self, manifest: Manifest, id: str, *, before: Manifest | None = None) -> bool:
        return manifest.id == id and manifest.complete

    def is_replaced_in(self, manifest: Manifest, id: str) -> bool:
        return id in manifest.replaced_ids

    def id_to_state(self, own: Manifest, old: OldFiles) -> str | None:
        return None


class ChangeById(Change):
    """A change that is recognised by the id of the writing: in the names of its shards, or stated if it has none.

    The id of the manifest does not tell: who begins a dataset writes one before the change, to which others may append.
    """

    __slots__ = ()

    def is_in(self, manifest: Manifest, id: str, *, before: Manifest | None = None) -> bool:
        return manifest.has_shards_of_since(id, before)

    def is_replaced_in(self, manifest: Manifest, id: str) -> bool:
        return id in manifest.replaced_ids

    def id_to_state(self, own: Manifest, old: OldFiles) -> str | None:
        return None if own.files else own.id


@dataclass(frozen=True, slots=True)
class _Grown(ChangeById):
    """A change of a dataset that grows: shards are added, and some, or all, of those before go."""

    unite: Unite
    partition_by: tuple[str, ...] = ()

    @abstractmethod
    def _remaining_files(self, files: ManifestFiles, own: Manifest, types: bytes | None) -> ManifestFiles:
        """The files of the dataset that stay; `types` is the schema of the columns of folders."""

    def check(self, manifest: Manifest | None, old: OldFiles) -> None:
        if manifest is None or manifest.is_begun or self.rules.replaces_all:
            return
        if manifest.partition_by != self.partition_by:
            names = list(manifest.partition_by)
            reason = f"'{old.place.path}': the dataset is {f'partitioned by {names}' if names else 'not partitioned'}"
            advice = f"pass partition_by={names!r}" if names else "leave out partition_by="
            options = " ".join(f"--partition-by {shlex.quote(name)}" for name in names)
            advice_cli = f"pass {options}" if names else "leave out --partition-by"
            raise for_cli(ValueError(f"{reason}; {advice}"), f"{reason}; {advice_cli}")

    def check_schemas(self, manifest: Manifest | None, own: Manifest, path: str) -> None:
        if manifest is None or manifest.is_begun or self.rules.replaces_all:
            return
        if own.partition_schema is not None:
            self.unite(manifest.partition_schema, own.partition_schema, path)
        if own.schema is not None or own.partition_schema is None:
            self.unite(manifest.schema, own.schema, path)

    def first_manifest(self, own: Manifest) -> Manifest:
        return own._replace(partition_by=self.partition_by)

    def next(self, manifest: Manifest | None, own: Manifest, old: OldFiles) -> Manifest | None:
        path = old.place.path
        if manifest is None:
            raise FileNotFoundError(errno.ENOENT, "the dataset was deleted while it was written to", path)
        if not self.rules.replaces_all and manifest.has_txn(own.txns):
            return manifest  # another attempt of the job has published its rows
        self.check(manifest, old)
        is_new = self.rules.replaces_all or manifest.is_begun
        added = own.records
        adds_rows = added > 0
        types, schema = own.partition_schema, own.schema
        if not is_new and manifest.partition_schema is not None:
            types = self.unite(manifest.partition_schema, types, path, adds_rows=adds_rows)
        kept = self._remaining_files(manifest.files, own, types)
        if not is_new:
            without_rows = not manifest.records
            schema = self.unite(manifest.schema, schema, path, without_rows=without_rows, adds_rows=adds_rows)
        gone = manifest.paths_without(manifest._replace(files=kept))
        names = {path for path in gone if not ShardName.id_in(path)}
        if not manifest.complete:  # it does not name all shards
            names.update(name for name in old.listing() if old.is_shard(name) and not ShardName.id_in(name))
        is_alike = is_new or not own.files or manifest.compression == own.compression
        new = manifest._replace(
            id=manifest.id if len(kept) == len(manifest.files) else own.id,  # else old readers go on
            files=all_files(kept).then(own.files),
            schema=schema,
            complete=True,
            compression=(own if is_new else manifest).compression if is_alike else None,
            replaces=(*manifest.replaces, *sorted(names)),
            partition_by=self.partition_by,
            partition_schema=types,
            sources_without_rows=(
                own.sources_without_rows if is_new else (*manifest.sources_without_rows, *own.sources_without_rows)
            ),
            metadata=own.metadata if is_new else tuple({**dict(manifest.metadata), **dict(own.metadata)}.items()),
            txns=own.txns if self.rules.replaces_all else Txn.add(manifest.txns, own.txns),
            history=_history_of_grown(manifest, kept, added),
        )
        return manifest if new == manifest else new  # no rows add no file

    def exists_error(self, name: str, old: OldFiles) -> FileExistsError:
        mode = self.rules.mode
        if not self.rules.needs_manifest:
            return Change.exists_error(self, name, old)
        text = f"shards of this name exist without a manifest, which mode={mode!r} needs"
        text_cli = f"shards of this name exist without a manifest, which --mode {mode} needs"
        error = FileExistsError(errno.EEXIST, f"{text}; tfrecord_io.adopt writes one", old.path_of(name))
        return for_cli(error, f"{text_cli}; tfr adopt writes one")


def _history_of_grown(manifest: Manifest, kept: ManifestFiles, added: int) -> History | None:
    """The history of a dataset after files were kept, dropped, and added with so many rows.

    After rows were replaced, it begins again: a reader of the earlier rows has rows that do not exist any more.
    """
    if manifest.is_begun:
        return manifest.history
    if len(kept) < len(manifest.files) and manifest._replace(files=kept).records < manifest.records:
        return None
    if not added:
        return manifest.history
    from tfrecord_io.store.paths.history import History

    return (manifest.history or History()).append(manifest.records, added, manifest.line)


_APPEND = Rules(
    mode="append",
    done="appended to",
    overtaken=OVERTAKEN,
    completion=_WRITE_AGAIN,
    is_addition=True,
    replaces_all=False,
    needs_manifest=True,
    needs_lock=True,
    is_planned=False,
)
_NEW = replace(_APPEND, mode="error", done="replaced", is_addition=False, needs_manifest=False)


@dataclass(frozen=True, slots=True)
class Append(_Grown):
    """Shards that are added to those of a dataset, or begin it; with `must_be_new`, they only begin it."""

    must_be_new: bool = False

    @property
    def rules(self) -> Rules:
        return _NEW if self.must_be_new else _APPEND

    def check(self, manifest: Manifest | None, old: OldFiles) -> None:
        if self.must_be_new and manifest is not None and not manifest.is_begun:
            text = "a sharded dataset of this name exists; mode='overwrite' replaces it, mode='append' adds to it"
            text_cli = "a sharded dataset of this name exists; --mode overwrite replaces it, --mode append adds to it"
            raise for_cli(FileExistsError(errno.EEXIST, text, old.place.path), text_cli)
        _Grown.check(self, manifest, old)  # super() does not work in a class with slots before Python 3.14

    def _remaining_files(self, files: ManifestFiles, own: Manifest, types: bytes | None) -> ManifestFiles:
        return files


_OVERWRITE = Rules(
    mode="overwrite",
    done="replaced",
    overtaken=OVERTAKEN,
    completion=_WRITE_AGAIN,
    is_addition=False,
    replaces_all=True,
    needs_manifest=False,
    needs_lock=True,
    is_planned=False,
)


@dataclass(frozen=True, slots=True)
class Overwrite(_Grown):
    """Shards that replace a dataset, under names that have the id of their writing."""

    @property
    def rules(self) -> Rules:
        return _OVERWRITE

    def _remaining_files(self, files: ManifestFiles, own: Manifest, types: bytes | None) -> ManifestFiles:
        return ()


_REPLACE_FOLDERS = Rules(
    mode="overwrite_partitions",
    done="folders replaced",
    overtaken=OVERTAKEN,
    completion=_WRITE_AGAIN,
    is_addition=False,
    replaces_all=False,
    needs_manifest=True,
    needs_lock=True,
    is_planned=False,
)


@dataclass(frozen=True, slots=True)
class ReplaceFolders(_Grown):
    """Shards that replace all shards in folders of the same values, or of the values in `unite`."""

    @property
    def rules(self) -> Rules:
        return _REPLACE_FOLDERS

    def _remaining_files(self, files: ManifestFiles, own: Manifest, types: bytes | None) -> ManifestFiles:
        def values_of(folder: str) -> Set[Any]:
            return self.unite.folder_values(ColumnFolder.pairs_in(f"{folder}/", ""), types)

        # Other programs spell names of folders in other ways: ``month=05`` is the folder of 5, as readers read it.
        old_files, replaced = all_files(files), {values_of(folder) for folder in own.folders}
        stated: Set[Any] = frozenset()
        if own.partition_schema is not None:  # else there was no data
            stated = self.unite.replaced_values(own.partition_schema, types)
        sought = SoughtFolders(map(dict, replaced)), SoughtFolders([dict(stated)])
        names = old_files.folder_names_where(lambda bounds: any(folders.may_be_in(bounds) for folders in sought))
        candidates = {name for folders in sought for name in folders.candidates(names)}
        return old_files.leave_out_folders(
            {name for name in candidates if (values := values_of(name)) in replaced or (stated and stated <= values)}
        )


def change_of(mode: str | None, unite: Unite, partition_by: tuple[str, ...] = (), *, grows: bool) -> Change:
    """The change for a caller's `mode`, by default "error", of a dataset that `grows` or has numbered names."""
    if not grows:
        return Whole(overwrite=mode == "overwrite")
    if mode == "overwrite":
        return Overwrite(unite, partition_by)
    if mode == "overwrite_partitions":
        return ReplaceFolders(unite, partition_by)
    return Append(unite, partition_by, must_be_new=mode in (None, "error"))
