"""A local disk: a folder in memory, where each call of a process that a name or a lock takes part in is one step.

Names, links, locks and errors are those of the system, as the folder is in its memory (tmpfs). What is simulated is
who goes on, which call fails, and what a loss of power takes: contents that were not synced, and names in folders
that were not. Numbers and times of files are those of the world, and listings are in order, so that nothing depends on
the speed of the machine, or on what ran before. A folder of more than `PAGE` names is listed in several steps. Reads
and writes of a file that is open are steps where they may fail; the calls to the system that compiled code makes are
none: files do not change once they have their names.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any
from zlib import crc32

from bucket import PAGE
from process import replaced
from scheduler import Actor, running

FAULTS = ("EIO", "EIO+")
WRITE_FAULTS = ("EIO", "EIO+", "ENOSPC")
READ_FAULTS = ("EIO",)
_NAMES = ("rename", "replace", "link")  # calls that give names

_real: dict[str, Any] = {
    name: getattr(os, name)
    for name in (
        *(
            "open",
            "close",
            "write",
            "fsync",
            "stat",
            "lstat",
            "fstat",
            "listdir",
            "scandir",
            "unlink",
            "remove",
            "rename",
            "replace",
        ),
        *("link", "mkdir", "rmdir", "dup", "preadv", "readlink", "utime"),
    )
}
_flock, real_open = fcntl.flock, builtins.open
_TICK = 4_000_000  # ns between two times of files


class Disk:
    """A folder, what is durable in it, and who has which descriptor.

    Durable are the content of a file at its last ``fsync``, and the names in a folder at that of the folder. Files
    have numbers in the order in which they are met, as those of the system are other ones in each run.
    """

    def __init__(self, root: str, scheduler: Any) -> None:
        self.root, self._scheduler = root, scheduler
        self._numbers: dict[int, int] = {}  # of files, by that of the system
        self._count = 0
        self._times: dict[int, list[int]] = {}  # of files: of the last change of the content, and of the file; ns
        self.synced: dict[int, bytes] = {}  # by number of the file
        # Of each folder, the names since it was synced, after each change; None: a folder. Changes of names of files
        # are durable in their order; a folder whose name is new may be forgotten whatever has a name next to it.
        self.names: dict[str, list[dict[str, int | None]]] = {root: [{}]}
        self.owners: dict[int, tuple[Actor, str]] = {}
        # By number of a file that got a name in another folder, which was not synced since: that name, and the old one.
        self.moved: dict[int, tuple[str, str]] = {}

    def has(self, path: Any) -> bool:
        return isinstance(path, str) and path.startswith(self.root)

    # ---- numbers and times

    def number(self, inode: int) -> int:
        if (found := self._numbers.get(inode)) is None:
            self._count += 1
            found = self._numbers[inode] = self._count
        return found

    def _now(self) -> int:
        return int(self._scheduler.now * 1e9) // _TICK * _TICK

    def touch(self, status: os.stat_result, *, written: bool = True) -> None:
        """Note that a file is changed now."""
        now = self._now()
        times = self._times.setdefault(self.number(status.st_ino), [now, now])
        times[1] = now
        if written:
            times[0] = now

    def shown(self, status: os.stat_result) -> os.stat_result:
        """What the system says of a file, with its number and times here."""
        number = self.number(status.st_ino)
        changed, named = self._times.get(number) or self._times.setdefault(number, [self._now()] * 2)
        more = {"st_mtime": changed / 1e9, "st_mtime_ns": changed, "st_ctime": named / 1e9, "st_ctime_ns": named}
        first = status[:10]
        return os.stat_result((first[0], number, *first[2:8], changed // 10**9, named // 10**9), more)

    def names_in(self, folder: str) -> dict[str, int | None]:
        """The numbers of the files in a folder by their names; None: a folder."""
        return {
            entry.name: None if entry.is_dir() else self.number(entry.inode()) for entry in _real["scandir"](folder)
        }

    # ---- what is durable

    def sync_file(self, descriptor: int) -> None:
        if not self._scheduler.may_lose_power:
            return
        status = _real["fstat"](descriptor)
        path = self.owners[descriptor][1]
        if stat.S_ISDIR(status.st_mode):
            folder = path.rstrip("/")
            self.names[folder] = [self.names_in(folder)]
            self.moved = {n: paths for n, paths in self.moved.items() if os.path.dirname(paths[0]) != folder}
        else:
            with real_open(f"/proc/self/fd/{descriptor}", "rb") as file:
                self.synced[self.number(status.st_ino)] = file.read()

    def lose_power(self, rng: random.Random) -> None:
        """Leave what is durable, and of the rest what a generator decides; a file that was moved has a name then.

        A new folder whose name was not synced may be gone with all in it, synced or not.
        """
        now: dict[str, dict[str, int | None]] = {}
        contents = dict(self.synced)
        folders = {folder: self._number_of_folder(folder) for folder, _, _ in walk(self.root)}
        for folder in folders:
            now[folder] = self.names_in(folder)
            for name, number in sorted(now[folder].items()):
                if number is not None and number not in contents:
                    with real_open(f"{folder}/{name}", "rb") as file:
                        body = file.read()
                    contents[number] = body if rng.random() < 0.5 else body[: rng.randrange(len(body) + 1)]
        after: dict[str, dict[str, int | None]] = {}
        for folder, names in now.items():  # each before those in it
            parent, _, own_name = folder.rpartition("/")
            if folder != self.root and own_name not in after.get(parent, ()):
                continue  # it was forgotten with all in it
            states = self.names.get(folder, [{}])
            after[folder] = dict(rng.choice([*states, names]))
            for name in (name for name, number in sorted(names.items()) if number is None):
                after[folder][name] = None
                if name not in states[0] and rng.random() < 0.5:
                    del after[folder][name]
        left = {number for names in after.values() for number in names.values()}
        for number, (_, old) in self.moved.items():
            folder, name = os.path.split(old)
            if number not in left and number in contents and folder in after:
                after[folder].setdefault(name, number)
        self.names = {folder: [names] for folder, names in after.items()}
        shutil.rmtree(self.root)
        self._write(self.root, after, contents, folders)
        self.synced.clear()
        self.moved.clear()

    def state(self) -> Any:
        """The folders, the files with their numbers and contents, the times, and what is durable."""
        folders, files = list[tuple[str, int | None]](), list[tuple[str, int, bytes]]()
        for folder, below, names in walk(self.root):
            folders += [(path, self._number_of_folder(path)) for path in (f"{folder}/{name}" for name in below)]
            for path in (f"{folder}/{name}" for name in names):
                with real_open(path, "rb") as file:
                    files.append((path, self.number(_real["fstat"](file.fileno()).st_ino), file.read()))
        return (
            self._count,
            folders,
            files,
            _copied(self._times),
            dict(self.synced),
            _copied(self.names),
            dict(self.moved),
        )

    def restore(self, state: Any) -> None:
        self._count, folders, files, times, synced, names, moved = state
        self._times, self.names, self.synced, self.moved = _copied(times), _copied(names), dict(synced), dict(moved)
        for folder, number in folders:
            self._make_folder(folder, number)
        for path, number, body in files:
            self._put(path, number, body)

    def _number_of_folder(self, folder: str) -> int | None:
        """Its number, which manifests may state; None if it was not asked for."""
        return self._numbers.get(_real["stat"](folder).st_ino)

    def _make_folder(self, folder: str, number: int | None) -> None:
        _real["mkdir"](folder)
        if number is not None:
            self._numbers[_real["stat"](folder).st_ino] = number

    def _put(self, path: str, number: int, body: bytes) -> None:
        with real_open(path, "wb") as file:
            file.write(body)
            self._numbers[_real["fstat"](file.fileno()).st_ino] = number

    def changed(self, *paths: Any) -> None:
        """Note the names in the folders of these paths, as filesystems keep changes of one folder in order.

        Of two paths, what had the first one has the second one now.
        """
        if len(paths) == 2:
            self.touch(_real["stat"](paths[1]), written=False)
        if not self._scheduler.may_lose_power:
            return
        for folder in {os.path.dirname(path.rstrip("/")) for path in paths if self.has(path)}:
            if folder.startswith(self.root):
                self.names.setdefault(folder, [{}]).append(self.names_in(folder))
        if len(paths) == 2 and os.path.dirname(paths[0]) != os.path.dirname(paths[1]):
            self.moved[self.number(_real["stat"](paths[1]).st_ino)] = paths[1], paths[0]

    def _write(
        self,
        folder: str,
        after: dict[str, dict[str, int | None]],
        contents: dict[int, bytes],
        folders: dict[str, int | None],
    ) -> None:
        self._make_folder(folder, folders.get(folder))
        for name, number in after.get(folder, {}).items():
            if number is None:
                self._write(f"{folder}/{name}", after, contents, folders)
            else:
                self._put(f"{folder}/{name}", number, contents.get(number, b""))


def walk(folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`, in order."""
    entries = sorted(_real["scandir"](folder), key=lambda entry: str(entry.name))
    below = [entry.name for entry in entries if entry.is_dir()]
    yield folder, below, [entry.name for entry in entries if not entry.is_dir()]
    for name in below:
        yield from walk(f"{folder}/{name}")


def _copied(lists: dict[Any, list[Any]]) -> dict[Any, list[Any]]:
    return {key: [each.copy() if isinstance(each, dict) else each for each in value] for key, value in lists.items()}


class _Entries:
    """What ``scandir`` gives."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> _Entries:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    close = __exit__


_FINISHED: dict[str, Callable[[Disk, Any], Any]] = {"stat": Disk.shown, "lstat": Disk.shown}


_disks: dict[int, Disk] = {}  # by scheduler


def attach(scheduler: Any, disk: Disk) -> None:
    _disks[id(scheduler)] = disk


def detach(scheduler: Any) -> None:
    _disks.pop(id(scheduler), None)


def _disk() -> tuple[Disk, Any, Actor] | None:
    found = running()
    if found is None:
        return None
    disk = _disks.get(id(found[0]))
    return None if disk is None else (disk, *found)


def _fault(name: str, path: str) -> OSError:
    number = getattr(errno, name.rstrip("+"))
    return OSError(number, os.strerror(number), path)


def _step(
    scheduler: Any, text: str, faults: tuple[str, ...], path: str, call: Callable[[], Any], *, commits: bool
) -> Any:
    fault = scheduler.point(text, faults, commits=commits)
    if fault and not fault.endswith("+"):
        raise _fault(fault, path)
    result = call()
    if fault:
        raise _fault(fault, path)
    return result


def _by_path(name: str, faults: tuple[str, ...]) -> Callable[..., Any]:
    real, finish = _real[name], _FINISHED.get(name, lambda disk, result: result)

    def call(path: Any = ".", *arguments: Any, **keywords: Any) -> Any:
        found = _disk()
        if found is None or not found[0].has(path):
            return real(path, *arguments, **keywords)
        disk, scheduler, _ = found
        shown = path[len(disk.root) :]
        if arguments and disk.has(arguments[0]):
            shown += f" {arguments[0][len(disk.root) :]}"

        def made() -> Any:
            if name in ("unlink", "remove"):
                disk.touch(_real["lstat"](path), written=False)  # it may have another name
            result = finish(disk, real(path, *arguments, **keywords))
            if faults is FAULTS:
                disk.changed(path, *arguments)
            return result

        return _step(scheduler, f"{name} {shown}", faults, path, made, commits=name in _NAMES)

    return call


def _listing(name: str, name_of: Callable[[Any], str], finish: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """A call that lists a folder: one with many names in parts, between which other processes go on."""
    real = _real[name]

    def place(entry: Any) -> int:
        return crc32(name_of(entry).encode())

    def call(path: Any = ".") -> Any:
        found = _disk()
        if found is None or not found[0].has(path):
            return real(path)
        disk, scheduler, _ = found
        listed: list[Any] = []

        def list_part() -> bool:
            """Add the next names; returns whether there are more."""
            left = sorted((e for e in real(path) if not listed or place(e) > place(listed[-1])), key=place)
            listed.extend(left[:PAGE])
            return len(left) > PAGE

        text = f"{name} {path[len(disk.root) :]}"
        while _step(scheduler, text, READ_FAULTS, path, list_part, commits=False):
            pass
        return finish(sorted(listed, key=name_of))

    return call


def _sim_open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    found = _disk()
    if found is None or not found[0].has(path):
        return int(_real["open"](path, flags, mode, dir_fd=dir_fd))
    disk, scheduler, actor = found
    text = f"open{'' if flags & os.O_CREAT else ' read'} {path[len(disk.root) :]}"
    faults = ("EIO", "ENOSPC") if flags & os.O_CREAT else READ_FAULTS
    fault = scheduler.point(text, faults)
    if fault:
        raise _fault(fault, path)
    descriptor = int(_real["open"](path, flags, mode))
    disk.owners[descriptor] = actor, path
    if flags & os.O_CREAT:
        disk.touch(_real["fstat"](descriptor), written=True)
        disk.changed(path)
    return descriptor


class _File(io.FileIO):
    """A file that is open for reading, each read of which may fail."""

    def __init__(self, path: str, disk: Disk, scheduler: Any) -> None:
        super().__init__(path, "r", opener=lambda path, flags: _sim_open(path, flags))
        self._scheduler, self._owners = scheduler, disk.owners

    def close(self) -> None:
        if not self.closed:
            self._owners.pop(self.fileno(), None)
        super().close()

    def readinto(self, buffer: Any, /) -> Any:
        _sim_read(self._scheduler, self.name)
        return super().readinto(buffer)

    def read(self, size: int | None = -1, /) -> Any:
        _sim_read(self._scheduler, self.name)
        return super().read(size)


def _sim_read(scheduler: Any, path: Any) -> None:
    if running() is not None and (fault := scheduler.point("read", READ_FAULTS)):
        raise _fault(fault, path)


def _open_file(path: Any, mode: str = "r", buffering: int = -1, *arguments: Any, **keywords: Any) -> Any:
    found = _disk()
    if found is None or not found[0].has(path) or mode not in ("rb", "r"):
        return real_open(path, mode, buffering, *arguments, **keywords)
    raw = _File(path, found[0], found[1])
    if buffering == 0:
        return raw
    binary = io.BufferedReader(raw)
    return binary if mode == "rb" else io.TextIOWrapper(binary, *arguments, **keywords)


def _close(descriptor: int) -> None:
    found = _disk()
    _real["close"](descriptor)
    if found is not None:
        disk, scheduler, actor = found
        disk.owners.pop(descriptor, None)
        if descriptor in actor.locks:
            actor.locks.discard(descriptor)
            scheduler.released()
            if not actor.dead:
                scheduler.point("unlock")


def _by_descriptor(name: str, faults: tuple[str, ...]) -> Callable[..., Any]:
    real = _real[name]

    def call(descriptor: Any, *arguments: Any) -> Any:
        found = _disk()
        if found is None or descriptor not in found[0].owners:
            return real(descriptor, *arguments)
        disk, scheduler, _ = found
        path = disk.owners[descriptor][1]
        commits = name == "fsync" and stat.S_ISDIR(_real["fstat"](descriptor).st_mode)

        def made() -> Any:
            result = real(descriptor, *arguments)
            if name == "fsync":
                disk.sync_file(descriptor)
            elif name == "write":
                disk.touch(_real["fstat"](descriptor))
            return result

        return _step(scheduler, f"{name} {path[len(disk.root) :]}", faults, path, made, commits=commits)

    return call


def _fstat(descriptor: int) -> os.stat_result:
    found, status = _disk(), _real["fstat"](descriptor)
    return found[0].shown(status) if found is not None and descriptor in found[0].owners else status


def _dup(descriptor: int) -> int:
    found, copy = _disk(), int(_real["dup"](descriptor))
    if found is not None and descriptor in found[0].owners:
        found[0].owners[copy] = found[0].owners[descriptor]
    return copy


def _sim_flock(descriptor: Any, operation: int) -> None:
    found = _disk()
    if found is None:
        _flock(descriptor, operation)
        return
    _, scheduler, actor = found

    def locked() -> bool:
        try:
            _flock(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            if operation & fcntl.LOCK_NB:
                raise
            return False
        actor.locks.add(descriptor)
        return True

    scheduler.point("lock")
    scheduler.wait("lock", locked)


def release(actor: Actor) -> None:
    """Release the locks of a process that ended; its descriptors are closed when its objects are."""
    for descriptor in actor.locks:
        _flock(descriptor, fcntl.LOCK_UN)
    actor.locks.clear()


def _replacements() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    for name in ("stat", "lstat", "readlink"):
        yield os, name, _by_path(name, READ_FAULTS)
    yield os, "listdir", _listing("listdir", str, list)
    yield os, "scandir", _listing("scandir", attrgetter("name"), _Entries)
    for name in ("unlink", "remove", "rename", "replace", "link", "mkdir", "rmdir"):
        yield os, name, _by_path(name, FAULTS)
    yield os, "open", _sim_open
    yield os, "close", _close
    yield os, "write", _by_descriptor("write", WRITE_FAULTS)
    yield os, "fstat", _fstat
    yield os, "dup", _dup
    yield os, "fsync", _by_descriptor("fsync", FAULTS)
    yield os, "preadv", _by_descriptor("preadv", READ_FAULTS)
    yield fcntl, "flock", _sim_flock
    yield builtins, "open", _open_file


def installed() -> Any:
    """Substitute the disk for the system's calls during a block, for actors."""
    return replaced(_replacements())
