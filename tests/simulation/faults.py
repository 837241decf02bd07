"""Faults of the past and of the kind that was met, each put back: what the simulation must find.

    python tests/simulation/faults.py [NAME …]

prints after how many random programs each is found.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import textwrap
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parent))

import pytest
import running
from programs import Program
from runs import by_seed, explored_of_three, run, simulated
from scheduler import GivenSchedule

from tfrecord_io.read.index import find_index
from tfrecord_io.read.verifying import file_check
from tfrecord_io.store.copies.copied_dataset import CopiedDataset
from tfrecord_io.store.operating_systems import System
from tfrecord_io.store.paths import found_manifests, manifest, manifest_sources, path_search, sidecars
from tfrecord_io.store.paths.manifest_parts import PartedFiles
from tfrecord_io.store.read import source
from tfrecord_io.store.write import atomic_local, commit_place_local, commit_place_remote, leftovers
from tfrecord_io.store.write.commit_place import Place
from tfrecord_io.store.write.old_files import OldFiles
from tfrecord_io.store.write.publication import Publication
from tfrecord_io.store.write.write_modes import Whole

MOST = 20_000
_MOST_STEPS = 80  # of the first actor of a program of `FAULTS_OF_ONE`

Patch = Callable[[pytest.MonkeyPatch], None]


def edited(owner: Any, name: str, old: str, new: str) -> Patch:
    """Replace a text in a function."""

    def patch(monkey: pytest.MonkeyPatch) -> None:
        function = getattr(owner, name)
        text = textwrap.dedent(inspect.getsource(function))
        assert old in text, f"{name} has no {old!r}"
        module = sys.modules[function.__module__]
        made: dict[str, Any] = {}
        exec("from __future__ import annotations\n" + text.replace(old, new), vars(module), made)
        monkey.setattr(owner, name, made[function.__name__])

    return patch


def unlocked(self: Any, required: bool) -> Any:
    return nullcontext(True)


def both(first: Patch, second: Patch) -> Patch:
    def patch(monkey: pytest.MonkeyPatch) -> None:
        first(monkey)
        second(monkey)

    return patch


def set_to(owner: Any, name: str, value: Any) -> Patch:
    return lambda monkey: monkey.setattr(owner, name, value)


def _nothing(*arguments: Any, **keywords: Any) -> None:
    return None


def _parts_after_the_manifest(monkey: pytest.MonkeyPatch) -> None:
    """Store the parts of a manifest when it is written."""
    late: list[tuple[Place, str, bytes]] = []
    for cls, name in ((commit_place_remote.S3Place, "update"), (commit_place_local.LocalPlace, "update")):
        store, update = cls._store_part, getattr(cls, name)

        def later(self: Any, name: str, body: bytes) -> None:
            late.append((self, name, body))

        def updated(self: Any, *arguments: Any, store: Any = store, update: Any = update) -> Any:
            result = update(self, *arguments)
            for place, part, body in late:
                store(place, part, body)
            late.clear()
            return result

        monkey.setattr(cls, "_store_part", later)
        monkey.setattr(cls, name, updated)


_REMOVED_EARLY = """arranged = self._arrange(old, new)
    parts = [part for part in (() if old is None else old.parts) if part not in arranged.manifest.parts]
    self._remove_parts([FileName.manifest_part(new.dataset, part.id) for part in parts])"""

Worlds = tuple[str, ...]
FAULTS: dict[str, tuple[Worlds, Patch]] = {
    "a listing older than the manifest is believed": (
        ("s3", "disk"),
        set_to(found_manifests.Manifests, "_find", _nothing),
    ),
    "folders are listed after the manifest was looked for": (
        ("disk",),
        edited(path_search, "walk_directory", "if not has_manifest", "if False and not has_manifest"),
    ),
    "a shard is read without a look whether its dataset was replaced": (
        ("s3", "disk"),
        set_to(source.ManifestVersion, "check_unchanged", _nothing),
    ),
    "the index of a shard that is being replaced is used": (
        ("s3", "disk"),
        edited(sidecars, "_may_have_sidecars", "source.shard.staged is not None", "False"),
    ),
    "verify compares two versions": (  # in a bucket, conditions of reads tell them apart before
        ("disk",),
        edited(file_check.FileChecker, "_check", "if problems.kept:", "if False:"),
    ),
    "a second dataset does not end that the first one is alone": (
        ("disk",),
        set_to(commit_place_local.LocalPlace, "_end_being_alone", _nothing),
    ),
    "two writers of a manifest, without a lock": (
        ("disk",),
        set_to(commit_place_local.LocalPlace, "_exclusion", unlocked),
    ),
    "a manifest is put without a condition": (
        ("s3",),
        edited(commit_place_remote.S3Place, "_put", "_s3_condition(version)", "{}"),
    ),
    "a refusal of the first manifest is an error": (
        ("s3",),
        set_to(commit_place_remote, "_is_refused", lambda error: False),
    ),
    "an answer that is lost is a refusal": (
        ("s3",),
        edited(commit_place_remote.ConditionalPlace, "update", "is_done(found)", "False"),
    ),
    "an overwrite deletes the shards of an append": (
        ("s3", "disk"),
        edited(Whole, "next", "(name in named or not ShardName.id_in(name))", "True"),
    ),
    "two new datasets mix their shards": (
        ("s3",),
        edited(Publication, "__init__", "self._is_exclusive = place.is_conditional", "self._is_exclusive = False"),
    ),
    "a new dataset hides that of another writer": (
        ("s3",),
        edited(Publication, "_begin", "manifest is not None or self.old.existing", "False"),
    ),
    "a first append is foreign to another": (
        ("s3", "disk"),
        edited(Publication, "_check_existing", "if self.output.grows and listing and", "if False and"),
    ),
    "staged shards that are gone are a fault of the store": (
        ("s3",),
        edited(Publication, "_name_all", "raise self.overtaken_error() from error", "raise"),
    ),
    "an overtaken writer copies over what is there": (
        ("s3", "gcs"),
        both(
            edited(Publication, "_name_staged", "if self.place.is_conditional else None", "if False else None"),
            edited(Publication, "_stop_others", "[*staged, *outdated]", "outdated"),
        ),
    ),
    "an overtaken writer removes what is written again": (
        ("s3",),
        edited(commit_place_remote.S3Place, "put_fence", "self._fence = ", "_ = "),
    ),
    "a compaction removes what is written again": (
        ("s3", "gcs", "azure"),
        edited(OldFiles, "is_numbered", "self.place.is_conditional", "self.place.is_conditional and not self._grows"),
    ),
    "a copy stores over what is there": (
        ("s3", "gcs", "azure"),
        set_to(CopiedDataset, "is_exclusive", lambda self, number: False),
    ),
    "settling forgets what others have added": (
        ("s3", "disk"),
        edited(Publication, "_settled_manifest", "files = current.files", "files = new.files"),
    ),
    "what failed is withdrawn although it is published": (
        ("s3", "disk"),
        edited(Publication, "_try_to_withdraw", "if has_own:", "if False:"),
    ),
    "a shard that was withdrawn is called published": (
        ("disk",),
        set_to(commit_place_local, "_NAMED", atomic_local._READABLE),
    ),
    "contents are not synced": (("disk",), edited(atomic_local.LocalOutput, "_finish", "os.fsync(self._fd)", "pass")),
    "names are not synced": (("disk",), set_to(System, "sync_directory", _nothing)),
    "clean leaves the indexes of shards that are gone": (
        ("s3", "disk"),
        edited(leftovers, "_find_left_names", "kinds[name] is Kind.INDEX and", "False and"),
    ),
    "clean leaves the shards that no manifest names": (
        ("s3", "disk"),
        set_to(leftovers, "_is_added", lambda file: False),
    ),
    "an index is believed without a comparison": (("disk",), set_to(find_index, "_check_records", _nothing)),
    "a manifest is put before its parts": (("s3", "disk"), _parts_after_the_manifest),
    "parts are removed before the manifest that does not name them": (
        ("s3", "disk"),
        edited(Place, "_change", "arranged = self._arrange(old, new)", _REMOVED_EARLY),
    ),
}


BESIDE = ("a second dataset does not end that the first one is alone",)
"""Those that take two datasets in a directory."""


def _ask_once(read: Callable[[], Any], question: Callable[[Any], Any], *known: Any) -> Any:
    """Ask a manifest as `ask_again` does first, and do not look again."""
    return question(known[0] if known else read())


FAULTS_OF_THREE: dict[str, tuple[str, Patch]] = {
    "the staged shards of the writer before the one that is replaced are forgotten": (
        "s3",
        edited(Publication, "_staged_before", "[*manifest.staged_before, *names]", "names"),
    )
}
"""Faults that take three writers, of which the last stores what was there before: those of `explored_of_three`."""


FAULTS_OF_ONE: dict[str, tuple[str, str, Patch]] = {
    "a reader whose part is gone does not look again": (
        "s3 grown+parts append:1 append:2 append:3 ; table | append:4 append:5 append:6 append:7",
        ">1",
        both(set_to(manifest_sources, "ask_again", _ask_once), set_to(manifest, "ask_again", _ask_once)),
    ),
    "a writer whose part is gone does not look again": (
        "s3 grown+parts append:1 append:2 append:3 ; append:4 | append:5 append:6 append:7 append:8",
        ">1",
        set_to(commit_place_remote, "ask_again", _ask_once),
    ),
    "clean removes parts without a change of the manifest": (
        "s3 grown+parts append:1 append:2 append:3 ; append:4 append:5 append:6 | clean",
        ">1",
        edited(Place, "part_ids_for_good", "if self.read() is not None:", "if False:"),
    ),
    "a writer whose answer was lost does not look for its shards": (
        "s3 grown+parts1 append:1 append:2 ; append:4",
        "!timeout+",
        edited(commit_place_remote.ConditionalPlace, "update", "is_done(found)", "False"),
    ),
    "a writer whose answer was lost does not look for its shards in parts": (
        "gcs grown+parts append:1 append:2 ; append:3 append:4",
        "!timeout+",
        edited(PartedFiles, "has_path_with", "self.pieces", "[piece for piece in [self.tail] if piece]"),
    ),
    "the folder of the parts is not synced": (
        "disk grown+parts1 append:1 ; append:3",
        "p",
        edited(commit_place_local.LocalPlace, "_store_part", "self.sync()", "pass"),
    ),
    "who begins a dataset without rows takes the manifest to which another one has appended for its own": (
        "s3 folders ; note:1 | append:2",
        ">1",
        edited(
            Publication,
            "_has_own",
            "return ",
            "return (manifest.id == self._id and manifest.complete and not self._stored) or ",
        ),
    ),
}
"""Faults that a program finds in which one thing happens to the first actor: all calls of the second one before one of
its own, an answer that is lost, or a loss of power."""


def found_by_one_decision(name: str) -> str | None:
    """The first schedule of one decision that finds such a fault; None if none does."""
    text, decision, patch = FAULTS_OF_ONE[name]
    program = Program.parse(text)
    for at in range(_MOST_STEPS):
        schedule = f"{at}{decision}"
        running.PREPARED.clear()  # what was written with the fault, or without
        with pytest.MonkeyPatch.context() as monkey, simulated():
            patch(monkey)
            found = run(program, GivenSchedule(schedule))[1]
            monkey.undo()
            running.PREPARED.clear()
            without = run(program, GivenSchedule(schedule))[1]
        assert without is None, f"{text} @ {schedule}, also without the fault: {without}"
        if found is not None:
            return schedule
    return None


def found_by_three(name: str) -> tuple[str, str] | None:
    """The first program of three writers, and its schedule, that find a fault; None if none does."""
    world, patch = FAULTS_OF_THREE[name]
    running.PREPARED.clear()  # what was written with another fault
    with pytest.MonkeyPatch.context() as monkey, simulated():
        patch(monkey)
        for program, decisions in explored_of_three(world):
            if run(program, GivenSchedule(decisions))[1] is not None:
                monkey.undo()
                running.PREPARED.clear()
                without = run(program, GivenSchedule(decisions))[1]
                assert without is None, f"{program} @ {decisions}, also without the fault: {without}"
                return str(program), decisions
    return None


def programs_until_found(name: str, most: int = MOST) -> int | None:
    """How many random programs it takes to find a fault; None if more than `most`."""
    worlds, patch = FAULTS[name]
    running.PREPARED.clear()  # what was written with another fault
    with pytest.MonkeyPatch.context() as monkey:
        patch(monkey)
        with simulated():
            for seed in range(most):
                if run(*by_seed(seed, worlds, beside=name in BESIDE))[1] is not None:
                    monkey.undo()
                    running.PREPARED.clear()
                    without = run(*by_seed(seed, worlds, beside=name in BESIDE))[1]
                    assert without is None, f"SEED={seed} of {worlds}, also without the fault: {without}"
                    return seed + 1
    return None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(FAULTS))
    parser.add_argument("--most", type=int, default=MOST)
    options = parser.parse_args()
    for name in options.names:
        found = programs_until_found(name, options.most)
        print(f"| {name} | {', '.join(FAULTS[name][0])} | {found or f'not in {options.most}'} |", flush=True)


if __name__ == "__main__":
    main()
