"""What is in a world: the files that its manifests name, their rows, and what is left next to them."""

from __future__ import annotations

import io
import json
from functools import lru_cache
from typing import Any

from calls import FIRST_NOTE, NOTE
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from model import Finding
from programs import Batch, rows_in
from worlds import World

import tfrecord_io as tfr
from tfrecord_io.bytes.format.framing import crc32c
from tfrecord_io.read.file_indexes import check_indexes
from tfrecord_io.store.paths import manifest_parts
from tfrecord_io.store.paths.file_names import FileName
from tfrecord_io.store.paths.manifest import parse_manifest


def named_rows(world: World) -> list[int] | None:
    """The rows of the files that the manifest names; None if they are not all there, complete."""
    names, manifests = set(world.names()), _manifests(world)
    if len(manifests) != 1:
        return None
    manifest = _stated(world, manifests[0])
    rows: list[int] = []
    for file in sorted(manifest["files"], key=lambda file: str(file["path"]).rpartition("/")[0]):
        body = world.content(file["path"]) if file["path"] in names else b""
        if len(body) != file["bytes"] or "staged" in file:
            return None
        if _checksum(body) != file["crc32c"] and manifest.get("complete") is not False:
            raise Finding(f"another file has the name of one of the manifest: {file['path']}")
        if len(found := _decoded(body)) != file["records"]:
            return None
        rows += found
    return None if manifest.get("complete") is False else rows


def are_named(world: World, rows: Batch) -> bool:
    """Whether manifests name files that have these rows now."""
    found, names = set[int](), set(world.names())
    for manifest in _manifests(world):
        stated = _stated(world, manifest)
        for file in stated["files"] if stated.get("complete") is not False else ():
            bodies = [world.content(file[key]) for key in ("staged", "path") if file.get(key) in names]
            found.update(*(_decoded(body) for body in bodies if _checksum(body) == file["crc32c"]))
    return found.issuperset(rows)


def marks(world: World, stem: str) -> frozenset[int]:
    """The transaction and the notes that the manifest of a dataset states; of all datasets, if its name is ""."""
    found = list[int]()
    for name in _manifests(world):
        if stem and FileName.parse(name).dataset != stem:
            continue
        stated = json.loads(world.content(name))
        found += [-number for number, *_ in stated.get("txn", {}).values()]
        notes = [key for key in stated.get("metadata", {}) if key.startswith(NOTE)]
        found += [-FIRST_NOTE - int(key.removeprefix(NOTE)) for key in notes]
    return frozenset(found)


def index_matches(world: World, path: str) -> bool:
    """Whether an index is there now, and is that of its file."""
    index = path[path.rindex("/d/") + 3 :]
    name = index.removesuffix(index[index.rindex(".") :])
    if not {index, name} <= set(world.names()):
        return False
    copies = MemoryFileSystem(skip_instance_cache=True)
    copies.store = {f"/{each}": MemoryFile(copies, f"/{each}", world.content(each)) for each in (index, name)}
    return check_indexes(f"/{name}", storage_options=copies)[0].error is None


def leftovers(world: World) -> list[str]:
    """The files next to the manifests, the files that these name, and the indexes of those; and open uploads."""
    names = world.names()
    used = set[str]()
    for name in names:
        folder, slash, base = name.rpartition("/")
        if base.startswith("_MANIFEST"):
            used.add(name)
            stated = _stated(world, name)
            for file in stated["files"]:
                used.update(folder + slash + each for each in (file["path"], file.get("staged")) if each)
            parts = [*stated.get("retired", ()), *(part["id"] for part in stated.get("parts", ()))]
            used.update(_part_name(name, id) for id in parts)
    used.update([index for name in used for index in FileName.indexes(name)])
    return [name for name in names if name not in used] + world.open_uploads()


def _manifests(world: World) -> list[str]:
    """The names of manifests in the directory of the dataset."""
    return [name for name in world.names() if name.startswith("_MANIFEST") and "/" not in name]


def _stated(world: World, name: str) -> Any:
    """The content of a manifest, with the files in its parts."""
    stated = json.loads(world.content(name))
    files: list[dict[str, Any]] = []
    if not stated.get("parts"):
        return stated
    manifest = parse_manifest(world.content(name), name)
    for part in () if manifest is None else manifest.parts:
        path = _part_name(name, part.id)
        if path not in world.names():
            raise Finding(f"a part of the manifest is missing: {path}")
        for file in manifest_parts.unpack(world.content(path), part, path):
            files.append({**file._asdict(), "crc32c": f"{file.crc32c:08x}"})
            files[-1].pop("staged")
    return {**stated, "files": [*files, *stated["files"]]}


def _part_name(manifest: str, id: str) -> str:
    folder, slash, base = manifest.rpartition("/")
    return folder + slash + FileName.manifest_part(FileName.parse(base).dataset or "", id)


@lru_cache(maxsize=2000)
def _decoded(body: bytes) -> tuple[int, ...]:
    """The rows of a file."""
    return tuple(rows_in(tfr.read_table(io.BytesIO(body)))) if body else ()


@lru_cache(maxsize=2000)
def _checksum(body: bytes) -> str:
    return f"{crc32c(body):08x}"
