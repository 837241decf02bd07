"""The format of manifests: the files of a sharded dataset with their records, sizes and checksums.

A manifest is a JSON object in the directory of the files: ``_MANIFEST.json`` for the dataset ``part``, the default name
in a directory, and ``_MANIFEST-train.json`` for ``train``, so that each dataset of a directory has one::

    {"format": "tfrecord_io manifest", "version": 1, "id": 16 hex digits, different for each writing,
     "dataset": "train", "complete": true, "compression": null or a codec's name,
     "records": sum, "bytes": sum, "schema": base64 of the content of field 21574 (the embedded schema), or null,
     "files": [{"path": "train-00000-of-00008", "records": 125, "bytes": 81920,
                "crc32c": 8 hex digits, of the file's bytes}, …]}

A file that was made of one other file, by ``convert(resume=True)``, also has "source": its path, size and version, and
a digest of the conversion's keywords. "sources_without_rows" has those of which no file was made.

While a dataset is being published, each file also has "staged", the name it may still have, and "replaces" lists files
of the old dataset; afterwards, those that could not be removed. ``"complete": false`` means that files are being
replaced one by one, as in a bucket. A manifest may be hostile: it is plain JSON of limited size, and each name must be
that of a shard of this dataset, in this directory.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tfrecord_io.errors import CorruptRecordError, printable
from tfrecord_io.storage.paths.shard_names import parse_shard
from tfrecord_io.storage.read.source import MAX_MANIFEST_BYTES

FORMAT = "tfrecord_io manifest"
VERSION = 1
DIRECTORY_STEM = "part"  # of shards written to a directory

_NAME = re.compile(r"_MANIFEST(?:-(?P<stem>.+))?\.json", re.DOTALL)
ID = re.compile("[0-9a-f]{16}")
_CRC = re.compile("[0-9a-f]{8}")
STAGED = re.compile(r"_[0-9a-f]{16}-[0-9]{5}\.staged")
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One shard."""

    path: str  # its name in the manifest's directory
    records: int
    bytes: int  # of the file, compressed if it is
    crc32c: int  # of the same bytes, unmasked
    staged: str | None = None  # the name of the file until it is renamed to `path`
    source: Mapping[str, str | int] | None = None  # the file that it was made of


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a manifest; see the module's docstring."""

    dataset: str
    id: str
    files: tuple[ManifestFile, ...]
    compression: str | None = None
    schema: bytes | None = None
    complete: bool = True
    replaces: tuple[str, ...] = ()
    sources_without_rows: tuple[Mapping[str, str | int], ...] = ()

    @property
    def records(self) -> int:
        return sum(file.records for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def new_id() -> str:
    """An id for one writing of a dataset."""
    return os.urandom(8).hex()


def manifest_name(stem: str) -> str:
    """File name of a dataset's manifest.

    >>> manifest_name("part"), manifest_name("train")
    ('_MANIFEST.json', '_MANIFEST-train.json')
    """
    return "_MANIFEST.json" if stem == DIRECTORY_STEM else f"_MANIFEST-{stem}.json"


def stem_of(name: str) -> str | None:
    """The dataset that a manifest of this file name describes; None if it is not the name of a manifest."""
    match = _NAME.fullmatch(name)
    return None if match is None else match["stem"] or DIRECTORY_STEM


def format_manifest(manifest: Manifest) -> bytes:
    """Format a manifest as JSON."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "id": manifest.id,
        "dataset": manifest.dataset,
        "complete": manifest.complete,
        "compression": manifest.compression,
        "records": manifest.records,
        "bytes": manifest.bytes,
        "schema": None if manifest.schema is None else base64.b64encode(manifest.schema).decode(),
    }
    if manifest.replaces:
        document["replaces"] = list(manifest.replaces)
    if manifest.sources_without_rows:
        document["sources_without_rows"] = [dict(source) for source in manifest.sources_without_rows]
    head = json.dumps(document, ensure_ascii=bool(manifest.sources_without_rows))
    # The path of a source may have bytes that are not UTF-8, which only escapes can hold.
    lines = ",\n  ".join(json.dumps(_entry(f), ensure_ascii=f.source is not None) for f in manifest.files)
    return f'{head[:-1]}, "files": [\n  {lines}\n]}}\n'.encode()


def _entry(file: ManifestFile) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": file.path, "records": file.records, "bytes": file.bytes}
    entry["crc32c"] = f"{file.crc32c:08x}"
    if file.staged is not None:
        entry["staged"] = file.staged
    return entry if file.source is None else {**entry, "source": dict(file.source)}


def parse_manifest(text: bytes, path: str) -> Manifest | None:
    """Parse a manifest; None if it is a file of another tool.

    If it is damaged, has another version, or names a file that is not a shard of its dataset, this is a
    CorruptRecordError.
    """
    if len(text) > MAX_MANIFEST_BYTES:
        _refuse(path, f"it has {len(text)} bytes, over the limit of {MAX_MANIFEST_BYTES}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        _refuse(path, f"it is not JSON ({type(error).__name__})")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return None
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        _refuse(path, f"it has version {printable(repr(version), 40)}, this release reads version {VERSION}")
    return _Parser(path).manifest(document)


class _Parser:
    """Parses a document and checks the types of its values."""

    def __init__(self, path: str) -> None:
        self._path = path

    def manifest(self, document: dict[str, Any]) -> Manifest:
        dataset = self._is(document, "dataset", str)
        if stem_of(os.path.basename(self._path)) not in (dataset, None):
            _refuse(self._path, f"it describes '{printable(dataset)}', which does not match its file name")
        files = tuple(self._file(entry, dataset) for entry in self._is(document, "files", list))
        names = {file.path for file in files}
        if len(names) < len(files):
            _refuse(self._path, "it names a file twice")
        compression = document.get("compression")
        replaces = self._is({"replaces": [], **document}, "replaces", list)
        sources = self._is({"sources_without_rows": [], **document}, "sources_without_rows", list)
        manifest = Manifest(
            dataset=dataset,
            id=self._matching(document, "id", ID),
            files=files,
            compression=compression if isinstance(compression, str) else None,
            schema=self._schema(document.get("schema")),
            complete=self._is(document, "complete", bool),
            replaces=tuple(self._shard(name, dataset) for name in replaces),
            sources_without_rows=tuple(source for source in sources if isinstance(source, dict)),
        )
        for name in ("records", "bytes"):
            if self._number(document, name) != getattr(manifest, name):
                _refuse(self._path, f"its number of {name} is not the sum over its files")
        return manifest

    def _file(self, entry: Any, dataset: str) -> ManifestFile:
        if not isinstance(entry, dict):
            _refuse(self._path, "an entry of its files is not an object")
        path = self._shard(entry.get("path"), dataset)
        records, size = self._number(entry, "records"), self._number(entry, "bytes")
        staged = self._matching(entry, "staged", STAGED) if "staged" in entry else None
        crc32c, source = int(self._matching(entry, "crc32c", _CRC), 16), entry.get("source")
        return ManifestFile(path, records, size, crc32c, staged, source if isinstance(source, dict) else None)

    def _shard(self, name: Any, dataset: str) -> str:
        """Check that a name is that of a shard in the manifest's directory."""
        if not isinstance(name, str) or not name:
            _refuse(self._path, "the name of a file is not text")
        if any(c in name for c in "/\\\0"):
            _refuse(self._path, f"it names '{printable(name)}', which leads out of its directory")
        shard = parse_shard(name)
        if shard is None or shard.stem != dataset:
            _refuse(self._path, f"it names '{printable(name)}', which is not a shard of '{printable(dataset)}'")
        return name

    def _schema(self, text: Any) -> bytes | None:
        if text is None:
            return None
        try:
            return base64.b64decode(text, validate=True)
        except (TypeError, ValueError):
            _refuse(self._path, "its schema is not base64")

    def _number(self, document: dict[str, Any], name: str) -> int:
        return int(self._is(document, name, int, lambda n: 0 <= n <= _MOST))

    def _matching(self, document: dict[str, Any], name: str, pattern: re.Pattern[str]) -> str:
        return str(self._is(document, name, str, lambda text: pattern.fullmatch(text) is not None))

    def _is(self, document: dict[str, Any], name: str, type_: type, holds: Callable[[Any], bool] | None = None) -> Any:
        value = document.get(name)
        if type(value) is not type_ or (holds is not None and not holds(value)):
            _refuse(self._path, f"its '{name}' is {printable(repr(value), 80)}")
        return value


def _refuse(path: str, what: str) -> NoReturn:
    advice = "write the dataset again, or delete the manifest to read the files without it"
    raise CorruptRecordError(f"the manifest cannot be used: {what}", path=path, advice=advice)
