"""The protocol of a dataset in a store: the requests of writers, readers and `clean`, in their order.

These are the steps of `tfrecord_io.store.write` and of the readers, without bytes: a shard is its rows, a manifest a
`Head`, a part of it a tuple of `File`. A writer may do one step wrongly (`WRONG`), which the checker has to find.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from checker import ABSENT, LOST, REFUSED, Process, Request

HEAD, PARTS, CLAIMS = "HEAD", "parts/", "claims/"
FENCE = "the fence of "
TAIL, PART = 1, 4  # files in the head behind parts, and in a part; no part is kept for readers of the head before
ROUNDS = 8  # of copies that are refused
TRIES = 2  # of a claim

WRONG = {
    "parts after the head": "a part is stored after the head that names it",
    "head without condition": "the head replaces whatever is there",
    "own head not recognised": "a writer whose answer was lost does not look for its shards in the head",
    "shards removed first": "shards are removed before the head that does not name them",
    "parts removed too early": "a part is removed although a request that names it may be under way",
    "shards withdrawn at once": "a shard is removed although a request that names it may be under way",
    "clean without a head": "`clean` removes parts without replacing the head before",
    "reader gives up": "a reader whose part is gone does not look at the head again",
    "transaction asked once": "whether a transaction is in is not asked again when the head is replaced",
    "names before the head": "staged shards get their names before the head that states both",
    "no staged_before": "the staged shards of the writer before are not removed before names are given",
    "copy without condition": "a staged shard gets its name whatever has it",
    "removal without fence": "an old numbered shard is removed by its name alone",
    "reader ignores staged": "a reader opens shards by their final names alone",
    "joined without a look": "shards are replaced without a look whether the head still names them",
    "joined rows are new": "the rows of a joined shard count as those of the commit that joins them",
    "look before the claim": "a writer looks for other claims before it puts its own",
    "head read before the claim": "the head that is changed was read before the claim",
    "claim removed early": "the claim is removed before the head is stored",
}


class File(NamedTuple):
    """A shard in a head or part; its rows stand for size and checksum."""

    path: str
    rows: tuple[int, ...]
    staged: str | None = None


class Part(NamedTuple):
    """A stored part in a head."""

    id: str
    count: int  # of its files


class Head(NamedTuple):
    """A manifest."""

    id: str
    files: tuple[Part | File, ...] = ()
    replaces: tuple[str, ...] = ()
    staged_before: tuple[str, ...] = ()
    replaced_ids: tuple[str, ...] = ()
    revision: int = 0
    retired: tuple[str, ...] = ()
    txn: int = 0
    commit: int = 0
    line: str = ""  # the id since which no rows were replaced
    commits: tuple[int, ...] = ()  # that of each row

    @property
    def parts(self) -> list[str]:
        return [piece.id for piece in self.files if isinstance(piece, Part)]


class Refused(Exception):
    """Another writer was first, and nothing of this writing stays."""


class Unanswered(Exception):
    """A request was made several times without an answer."""


class PartGone(Exception):
    """A part is gone, as the head was replaced."""


Change = Callable[[Head | None], Generator[Request, Any, Head | None]]


def id_of(path: str) -> str | None:
    """The id of the writing in the name of a shard; None for a numbered name."""
    name = path.rpartition("/")[2]
    return None if name.startswith("#") else name


def get(key: str) -> Process:
    return (yield Request("get", key))


class Member:
    """A process.

    Parameters
    ----------
    id : str
        Of its writing.
    claims : bool
        The store has no conditions.
    tries : int
        Times that a request is made until it is answered.
    wrong : str
        What it does wrongly, of `WRONG`.
    """

    def __init__(self, id: str, *, claims: bool = False, tries: int = 2, wrong: str = "") -> None:
        self.id, self._claims, self._tries, self._wrong = id, claims, tries, wrong
        self._parts: dict[str, tuple[File, ...]] = {}  # that were read or made
        self._made = 0
        self._known: Head | None = None  # the head that was read last
        self._has_known = False

    # ---- requests

    def _request(self, kind: str, key: Any, body: Any = None, condition: Any = None) -> Process:
        request = Request(kind, key, body, None if self._claims else condition)
        for _ in range(self._tries):
            if (answer := (yield request)) is not LOST:
                return answer
        raise Unanswered

    def _read(self) -> Process:
        self._known, self._has_known = (yield from get(HEAD)), True
        return self._known

    def _load(self, head: Head | None) -> Generator[Request, Any, list[File]]:
        """The files of a head."""
        files: list[File] = []
        for piece in () if head is None else head.files:
            if isinstance(piece, File):
                files.append(piece)
                continue
            if piece.id not in self._parts:
                if (body := (yield from get(PARTS + piece.id))) is None:
                    raise PartGone(piece.id)
                self._parts[piece.id] = body
            files += self._parts[piece.id]
        return files

    def _ask(self, question: Callable[[Head | None], Process], *known: Head | None) -> Process:
        """Ask a known head, else the one that is there, and again if a part of it is gone."""
        gone = ""
        while True:
            head, known = (known[0], known[1:]) if known else ((yield from self._read()), ())
            try:
                return (yield from question(head))
            except PartGone as error:
                if gone == error.args[0]:
                    raise AssertionError(f"the head names the part {gone}, which is missing") from None
                gone = error.args[0]

    # ---- replacing the head

    def _arrange(self, old: Head | None, new: Head) -> Generator[Request, Any, tuple[Head, list[Request], list[str]]]:
        """The head with its files in parts, which are stored, and the parts to remove after it."""
        stores: list[Request] = []

        def part_of(files: Sequence[File]) -> Part:
            self._made += 1
            part = Part(f"{self.id}{self._made}", len(files))
            self._parts[part.id] = tuple(files)
            stores.append(Request("put", PARTS + part.id, tuple(files), ABSENT))
            return part

        runs: list[Part | list[File]] = []
        for piece in new.files:
            if isinstance(piece, File) and runs and isinstance(runs[-1], list):
                runs[-1].append(piece)
            else:
                runs.append(piece if isinstance(piece, Part) else [piece])
        arranged: list[Part | File] = []
        if _count(new) <= 1 or any(isinstance(piece, File) and piece.staged for piece in new.files):
            arranged, runs = (yield from self._load(new)), []
        for at, run in enumerate(runs):
            is_last = at == len(runs) - 1
            if isinstance(run, Part):
                arranged.append(run)
            elif is_last and at > 0 and len(run) <= TAIL:
                arranged += run
            else:
                before, most = arranged[-1] if arranged else None, PART if is_last else PART // 2
                if isinstance(before, Part) and before.count + len(run) <= most:
                    run = [*(yield from self._load(Head("", (before,)))), *run]
                    arranged.pop()
                arranged += [part_of(run[first : first + PART]) for first in range(0, len(run), PART)]
        new = new._replace(files=tuple(arranged))
        if new.parts or (old is not None and old.revision) or new.revision:
            unnamed = [id for id in (() if old is None else old.parts) if id not in new.parts]
            revision = max(new.revision, 0 if old is None else old.revision) + 1
            new = new._replace(revision=revision, retired=tuple(unnamed))
        if self._wrong != "parts after the head":
            for store in stores:
                yield from self._request(*store)
        return new, stores, [] if old is None else [*old.retired]

    def _remove_parts(self, ids: Iterable[str]) -> Process:
        if keys := tuple(PARTS + id for id in ids):
            yield Request("delete", keys)

    def _update(self, change: Change, is_done: Callable[[Head], Process]) -> Process:
        """Replace the head by its change; returns the old and the new one."""
        unused: list[str] = []
        while True:
            known = (self._known,) if self._has_known and not self._claims else ()
            if self._wrong == "head read before the claim":
                known = (self._known,)

            def arranged(old: Head | None) -> Process:
                new = yield from change(old)
                return old, new, None if new is old else (yield from self._arrange(old, new))

            try:
                old, new, plan = yield from self._ask(arranged, *known)
            except Refused:
                yield from self._remove_parts(unused)
                raise
            if plan is None:
                yield from self._remove_parts(unused)
                return old, old
            new, stores, gone = plan
            made = [store.key.removeprefix(PARTS) for store in stores]
            if self._wrong == "claim removed early":
                yield Request("delete", (CLAIMS + self.id,))
            condition = None if self._wrong == "head without condition" else ABSENT if old is None else old
            try:
                answer = yield from self._request("put", HEAD, new, condition)
            except Unanswered:
                if self._wrong == "parts removed too early":
                    yield from self._remove_parts(made)
                raise
            if answer is not REFUSED:
                self._known, self._has_known = new, True
                if self._wrong == "parts after the head":
                    yield from stores
                yield from self._remove_parts([*unused, *gone])
                return old, new

            def looked_at(head: Head | None) -> Process:
                return head, head is not None and (yield from is_done(head))

            current, is_there = yield from self._ask(looked_at)
            if is_there and self._wrong != "own head not recognised":
                try:
                    yield from self._paths_without(old, current)
                except PartGone:
                    return old, new  # as it was written
                return old, current
            if current != old:  # else the request that was refused may be under way
                used = () if current is None else (*current.parts, *current.retired)
                unused += [id for id in made if id not in used]

    def _claimed(self, body: Callable[[], Process]) -> Process:
        """Do something while no other writer has a claim."""
        if not self._claims:
            return (yield from body())
        claim = CLAIMS + self.id
        for attempt in range(TRIES):
            others: Any = ()
            if self._wrong == "look before the claim":
                others = yield Request("list", CLAIMS)
            yield from self._request("put", claim, self.id)
            if self._wrong != "look before the claim":
                others = yield Request("list", CLAIMS)
            if [name for name, _ in others if name != claim]:
                yield Request("delete", (claim,))
                if attempt == TRIES - 1:
                    raise Refused
                continue
            break
        try:
            result = yield from body()
        except (Refused, Unanswered):
            yield Request("delete", (claim,))
            raise
        yield Request("delete", (claim,))
        return result

    # ---- changes of a dataset whose names have ids

    def _is_own(self, head: Head) -> Process:
        if self.id in head.replaced_ids or any(id_of(path) == self.id for path in head.replaces):
            return True
        return any(id_of(file.path) == self.id for file in (yield from self._load(head)))

    def _publish(self, shards: Sequence[File], change: Change) -> Process:
        """Store shards, replace the head, and remove what it replaced; "done", "refused", "failed" or "repeated"."""
        try:
            for shard in shards:
                yield from self._request("put", shard.path, shard.rows, ABSENT)
            return (yield from self._claimed(lambda: self._replace_and_settle(change)))
        except (Refused, Unanswered) as error:
            result = "refused" if isinstance(error, Refused) else "failed"
            names = [shard.path for shard in shards]
            is_in = yield from self._withdraw(names, self._is_own, is_unanswered=isinstance(error, Unanswered))
            return "done" if is_in else result

    def _replace_and_settle(self, change: Change) -> Process:
        if self._wrong == "shards removed first":
            new = yield from change(self._known)
            yield from self._remove_shards(self._known, new)
        old, new = yield from self._update(change, self._is_own)
        if new is old and not (yield from self._ask(self._is_own, new)):
            raise Refused
        gone = yield from self._remove_shards(old, new)
        if new.replaces or new.staged_before:
            yield from self._update(
                lambda head: _value(_settled(head, gone)), lambda head: _value(_settled(head, gone) == head)
            )
        return "done"

    def _paths_without(self, old: Head | None, new: Head) -> Process:
        """The shards that a head no longer names; parts that both have are not read."""
        before = () if old is None else old.files
        own, others = (
            Head("", tuple(p for p in a if p not in b)) for a, b in ((before, new.files), (new.files, before))
        )
        named = {file.path for file in (yield from self._load(others))}
        return [file.path for file in (yield from self._load(own)) if file.path not in named]

    def _remove_shards(self, old: Head | None, new: Head) -> Process:
        gone = yield from self._paths_without(old, new)
        named = {file.path for file in (yield from self._ask(self._load, new))} if new.replaces else set()
        gone = [*dict.fromkeys(path for path in (*gone, *new.replaces) if path not in named)]
        if gone:
            yield Request("delete", tuple(gone))
        return gone

    def _withdraw(self, names: Sequence[str], is_own: Callable[[Head], Process], *, is_unanswered: bool) -> Process:
        """Remove shards that were stored, unless the head names them; True if it does.

        If a request to replace the head got no answer, the head is replaced by itself before, so that it is refused.
        """

        def has_own(head: Head | None) -> Process:
            return head is not None and (yield from is_own(head))

        if (yield from self._ask(has_own)):
            return True
        if is_unanswered and self._wrong != "shards withdrawn at once":
            try:
                yield from self._replace_by_itself()
            except Unanswered:
                return False
            if (yield from self._ask(has_own)):
                return True
        if names:
            yield Request("delete", tuple(names))
        return False

    def append(self, *rows: int, folder: str = "0", txn: int = 0) -> Process:
        """Add a shard; with a transaction, unless it is in."""
        known, shard = (yield from self._read()), File(f"{folder}/{self.id}", rows)
        if txn and known is not None and known.txn >= txn:
            return "repeated"

        def change(old: Head) -> Process:
            if txn and old.txn >= txn and self._wrong != "transaction asked once":
                return old
            commit = old.commit + 1
            return old._replace(
                files=(*old.files, shard),
                txn=txn or old.txn,
                commit=commit,
                commits=(*old.commits, *[commit] * len(rows)),
            )
            yield

        result = yield from self._publish([shard], change)
        return "repeated" if txn and result == "refused" else result

    def replace_folder(self, *rows: int, folder: str) -> Process:
        """Replace all shards of a folder by one."""
        yield from self._read()
        shard = File(f"{folder}/{self.id}", rows)

        def change(old: Head) -> Process:
            gone = [file for file in (yield from self._load(old)) if file.path.startswith(f"{folder}/")]
            new = _replaced(old, self._parts, {file.path: None for file in gone})
            ids = tuple(filter(None, (id_of(file.path) for file in gone)))
            return new._replace(
                id=self.id,
                files=(*new.files, shard),
                replaced_ids=(*old.replaced_ids, *ids),
                line=self.id,
                commit=0,
                commits=(0,) * (len(new.commits) + len(rows)),
            )

        return (yield from self._publish([shard], change))

    def compact(self) -> Process:
        """Join the first two shards."""
        return (
            yield from self._replace_shards(lambda files: [(files[:2], [row for f in files[:2] for row in f.rows])])
        )

    def delete(self, row: int) -> Process:
        """Remove a row: its shard is written again without it, or left out if it has no other."""
        return (
            yield from self._replace_shards(
                lambda files: [([f], [r for r in f.rows if r != row]) for f in files if row in f.rows]
            )
        )

    def _replace_shards(self, plan: Callable[[list[File]], list[tuple[list[File], list[int]]]]) -> Process:
        before: list[File] = []

        def planned(head: Head | None) -> Process:
            before[:] = yield from self._load(head)
            return head

        planned_head = yield from self._ask(planned)
        commit_of = dict(zip([row for file in before for row in file.rows], planned_head.commits, strict=True))
        changes: dict[str, File | None] = {}
        shards: list[File] = []
        for gone, rows in plan(before):
            for file in gone:
                if (yield from get(file.path)) is None:
                    return "refused"
                changes[file.path] = None
            if rows:
                shards.append(File(f"{gone[0].path.partition('/')[0]}/{self.id}", tuple(rows)))
                changes[gone[0].path] = shards[-1]
        if (yield from get(HEAD)).id != planned_head.id:
            return "refused"
        replaced = {file.path: file for file in before if file.path in changes}

        def change(old: Head) -> Process:
            files = {file.path: file for file in (yield from self._load(old))}
            is_there = all(files.get(path) == file for path, file in replaced.items())
            if not is_there and self._wrong != "joined without a look":
                raise Refused
            commits = dict(zip([row for file in files.values() for row in file.rows], old.commits, strict=True))
            commits = {**commits, **commit_of}
            if self._wrong == "joined rows are new":
                commits.update((row, old.commit + 1) for shard in shards for row in shard.rows)
            new = _replaced(old, self._parts, changes)
            rows = [row for file in _flat(new, self._parts) for row in file.rows]
            ids = tuple(filter(None, map(id_of, replaced)))
            return new._replace(
                id=self.id,
                replaces=(*old.replaces, *replaced),
                replaced_ids=(*old.replaced_ids, *ids, *(() if shards else (self.id,))),
                commit=old.commit + 1,
                commits=tuple(commits[row] for row in rows),
            )

        return (yield from self._publish(shards, change))

    # ---- numbered names

    def overwrite(self, *shards: Sequence[int]) -> Process:
        """Replace all shards by others with numbered names, which wait under staged names."""
        files = [
            File(f"#{at} of {len(shards)}", tuple(rows), f"staged {self.id}{at}") for at, rows in enumerate(shards)
        ]
        versions: dict[str, Any] = {}
        seen: set[str] = set()

        def note_versions() -> Process:
            versions.clear()
            versions.update((yield Request("list", "#")))

        def change(old: Head) -> Process:
            if old.id != self.id:
                if self.id in old.replaced_ids:
                    raise Refused
                if seen and old.id not in seen:
                    is_there = (yield from get(str(files[0].staged))) is not None
                    if not is_there or files[0].staged in old.staged_before:
                        raise Refused
                seen.add(old.id)
            named = [file.path for file in (yield from self._load(old))]
            own, gone = {file.path for file in files}, [*versions, *named, *old.replaces]
            before = old.staged_before
            if old.id != self.id:
                staged = [str(f.staged) for f in old.files if isinstance(f, File) and f.staged]
                before = (*before, *staged, FENCE + old.id)
            return Head(
                self.id, tuple(files), tuple(p for p in dict.fromkeys(gone) if p not in own), before,
                (*old.replaced_ids, *([old.id] if old.id != self.id else [])), old.revision, line=self.id,
                commits=(0,) * sum(len(file.rows) for file in files),
            )  # fmt: skip

        def give_names() -> Process:
            left = files
            for _ in range(ROUNDS):
                if self._wrong != "names before the head":
                    yield from check_own()
                refused = []
                for file in left:
                    condition = None if self._wrong == "copy without condition" else versions.get(file.path, ABSENT)
                    answer = yield from self._request("copy", file.path, str(file.staged), condition)
                    if answer is None and condition is ABSENT:
                        raise Refused  # the staged shard is gone
                    refused += [file] if answer in (REFUSED, None) else []
                if not (left := refused):
                    return
                yield from note_versions()
            raise Refused

        def check_own() -> Process:
            head = yield from self._read()
            if head is None or head.id != self.id:
                raise Refused

        def replace_all() -> Process:
            if self._wrong == "names before the head":
                yield from give_names()
            old, new = yield from self._update(change, lambda head: _value(head.id == self.id))
            if new.staged_before and self._wrong != "no staged_before":
                yield Request("delete", new.staged_before)
            if self._wrong != "names before the head":
                yield from give_names()
            own = {file.path for file in files}
            before = () if old is None else [file.path for file in (yield from self._load(old))]
            gone = [path for path in dict.fromkeys((*before, *new.replaces)) if path not in own]
            if gone:
                yield from self._remove_numbered(gone, note_versions, versions, check_own)
            yield from self._update(settled, lambda head: _value(head.id == self.id))
            yield Request("delete", (*(str(file.staged) for file in files), *([FENCE + self.id] if gone else [])))
            return "done"

        def settled(head: Head | None) -> Process:
            if head is None or head.id != self.id:
                raise Refused
            return _settled(head, head.replaces)
            yield

        try:
            yield from note_versions()
            for file in files:
                yield from self._request("put", str(file.staged), file.rows)
            yield from note_versions()
            return (yield from replace_all())
        except (Refused, Unanswered) as error:
            names, is_unanswered = [*(str(f.staged) for f in files), FENCE + self.id], isinstance(error, Unanswered)
            is_in = yield from self._withdraw(names, lambda h: _value(h.id == self.id), is_unanswered=is_unanswered)
            return "done" if is_in else "failed" if is_unanswered else "refused"

    def _remove_numbered(
        self, gone: Sequence[str], note_versions: Callable[[], Process], versions: Mapping[str, Any],
        check_own: Callable[[], Process],
    ) -> Process:  # fmt: skip
        """Remove numbered shards of the version that was seen: a copy of the fence replaces each first."""
        yield from note_versions()
        there = [path for path in gone if path in versions]
        if there and self._wrong != "removal without fence":
            yield from self._request("put", FENCE + self.id, self.id)
        yield from check_own()
        for path in there:
            if self._wrong == "removal without fence":
                yield Request("delete", (path,))
                continue
            answer = yield from self._request("copy", path, FENCE + self.id, versions[path])
            if answer is True or (yield from get(path)) == self.id:
                yield from self._request("delete", (path,), None, self.id)

    # ---- others

    def clean(self, old: Sequence[str] = ()) -> Process:
        """Remove parts that no writer will name, and the `old` files that the head does not name."""
        listed = [name for name, _ in (yield Request("list", ""))]
        files = yield from self._ask(self._load)
        used = {name for file in files for name in (file.path, file.staged)}
        parts = [name for name in listed if name.startswith(PARTS)]
        if self._known is not None:
            named = {PARTS + id for id in (*self._known.parts, *self._known.retired)}
            if parts := [name for name in parts if name not in named]:
                try:
                    head = yield from self._claimed(self._replaced_head)
                except (Refused, Unanswered):
                    return "failed"
                named = set() if head is None else {PARTS + id for id in (*head.parts, *head.retired)}
            for name in [*parts, *(name for name in old if name in listed)]:
                if name not in named and name not in used:
                    yield Request("delete", (name,))
        return "done"

    def _replaced_head(self) -> Process:
        """The head, after it was replaced by itself."""
        if self._wrong != "clean without a head":
            yield from self._replace_by_itself()
        return (yield from self._read())

    def _replace_by_itself(self) -> Process:
        revision = 0

        def again(head: Head | None) -> Process:
            nonlocal revision
            if head is None:
                raise Refused
            revision = head.revision + 1
            return head._replace(revision=revision)
            yield

        self._has_known = False
        yield from self._update(again, lambda head: _value(head.revision >= revision))

    def adopt(self) -> Process:
        """Name all shards that are there in a new head."""
        listed = yield Request("list", "0/")
        files = tuple(File(name, rows) for name, rows in listed)

        def change(old: Head | None) -> Process:
            if old is not None:
                raise Refused
            return Head(self.id, files, line=self.id, commits=(0,) * sum(len(file.rows) for file in files))
            yield

        try:
            yield from self._claimed(lambda: self._update(change, lambda head: _value(head.id == self.id)))
        except (Refused, Unanswered) as error:
            return "refused" if isinstance(error, Refused) else "failed"
        return "done"

    def read(self) -> Process:
        """All rows: ("read", rows), or "replaced"; other results are those of a reader that lost something."""
        listed = dict((yield Request("list", "#")))
        first = yield from self._read()
        looks = 0

        def files_of(head: Head | None) -> Process:
            nonlocal looks
            looks += 1
            if head is None or head.id != first.id:
                return None
            if looks > 1 and self._wrong == "reader gives up":
                return "damaged: a part is missing"
            return (yield from self._load(head))[: _count(first)]

        files = yield from self._ask(files_of, first)
        if files is None or isinstance(files, str):
            return files or "replaced"
        rows: list[int] = []
        for file in files:
            body = None
            if file.staged and self._wrong != "reader ignores staged":
                body = yield from get(file.staged)
            is_numbered = id_of(file.path) is None
            if body is None and is_numbered and (yield from get(HEAD)).id != first.id:
                return "replaced"
            if body is None:
                body = yield from get(file.path)
                is_listed = not is_numbered or body == listed.get(file.path, body)
                if (body is None or not is_listed) and (yield from get(HEAD)).id != first.id:
                    return "replaced"
            if body != file.rows:
                return f"damaged: {file}, {body}"
            rows += body
        return "replaced" if (yield from get(HEAD)).id != first.id else ("read", tuple(rows))

    def follow(self) -> Process:
        """The rows of a version, those that were added since, and all rows then: ("followed", …), or "replaced"."""
        first = yield from self._read()
        before = yield from self._ask(self._load, first)
        if self._known.id != first.id:
            return "replaced"
        first = self._known
        after = yield from self._ask(self._load)
        if self._known.line != first.line:
            return "replaced"
        rows = [row for file in after for row in file.rows]
        added = [row for row, commit in zip(rows, self._known.commits, strict=True) if commit > first.commit]
        return "followed", tuple(row for file in before for row in file.rows), tuple(added), tuple(rows)


def _value(value: Any) -> Process:
    return value
    yield


def _count(head: Head) -> int:
    return sum(piece.count if isinstance(piece, Part) else 1 for piece in head.files)


def _flat(head: Head, parts: Mapping[str, Sequence[File]]) -> list[File]:
    return [f for piece in head.files for f in (parts[piece.id] if isinstance(piece, Part) else (piece,))]


def _replaced(head: Head, parts: Mapping[str, Sequence[File]], changes: Mapping[str, File | None]) -> Head:
    """A head with other files instead of some; parts without these stay."""
    pieces: list[Part | File] = []
    for piece in head.files:
        files = parts[piece.id] if isinstance(piece, Part) else (piece,)
        is_touched = any(file.path in changes for file in files)
        pieces += [f for file in files if (f := changes.get(file.path, file))] if is_touched else [piece]
    rows = [row for file in _flat(head, parts) for row in file.rows]
    left = {row for file in _flat(head._replace(files=tuple(pieces)), parts) for row in file.rows}
    commits = tuple(commit for row, commit in zip(rows, head.commits, strict=True) if row in left)
    return head._replace(files=tuple(pieces), commits=commits)


def _settled(head: Head, gone: Iterable[str]) -> Head:
    """The head without the names that its writer has given, and without what it has removed."""
    files = tuple(piece._replace(staged=None) if isinstance(piece, File) else piece for piece in head.files)
    replaces = tuple(path for path in head.replaces if path not in gone)
    settled = head._replace(files=files, replaces=replaces, staged_before=())
    return head if settled == head else settled
