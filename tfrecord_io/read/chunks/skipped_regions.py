"""An account of the regions of files that a read left out: sums, a table, a warning.

Each read has one, and most stay empty.

Tests: tests/read/test_report_collected_regions.py.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, overload

import pyarrow as pa

from tfrecord_io.base import byte_size, counted, printable, warn
from tfrecord_io.errors import CompressionError, CorruptRecordError, DamagedDataWarning, FeatureTypeError

if TYPE_CHECKING:
    from tfrecord_io.read.chunks.skipped_region import SkippedRegion

_NAMED_FILES = 3  # in a warning
_LOST_BYTES = {CorruptRecordError.__name__, CompressionError.__name__}
_FIRST_LOST = "the first record of a file, which may have held the schema, is among them: types are inferred"
_REGION = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("first_record", pa.int64()),
        pa.field("begin_byte", pa.int64()),
        pa.field("end_byte", pa.int64()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
    ]
)


class SkippedRegions(Sequence["SkippedRegion"]):
    """The regions that were left out, in the order of the files, and sums over all.

    These are the first `MOST`; with ``on_error="collect"`` all of them.

    Attributes
    ----------
    total : int
        Number of all regions.
    bytes : int
        The sum of their sizes, as far as they are known.
    files : Counter of str
        Number of regions by path.
    """

    MOST: ClassVar = 1000  # that are kept
    HEADINGS: ClassVar = ("file", "records before", "begin", "end", "left out because")

    def __init__(self, receive: Callable[[SkippedRegions], object] | None = None) -> None:
        self._receive, self._keeps_all = receive, receive is not None  # see `OnDamage.receive`
        self.clear()

    def clear(self) -> None:
        """Count from zero again."""
        self.total = self.bytes = 0
        self.files: Counter[str] = Counter()
        self._kept: list[tuple[int, int, int, int, SkippedRegion]] = []
        self._numbers: set[int] = set()
        self._errors: set[str] = set()  # the classes
        self._in_memory = False  # one is of a file object, or of a column
        self._images = 0  # that could not be decoded, of records that are intact

    def add(self, region: SkippedRegion, file: int = 0, *, in_memory: bool = False, of_image: bool = False) -> None:
        """Add a region of the file with a number in the order of reading."""
        begin = -1 if region.begin is None else region.begin
        insort(self._kept, (file, region.records_before, begin, self.total, region))
        if not self._keeps_all:
            del self._kept[self.MOST :]
        self.total += 1
        self.bytes += region.bytes or 0
        self.files[region.path] += 1
        self._errors.add(region.error)
        self._numbers.add(file)
        self._in_memory |= in_memory
        self._images += of_image

    def add_all(self, others: SkippedRegions) -> None:
        """Add the regions of another read, behind those of this one."""
        after = max(self._numbers, default=-1) + 1
        kept = [(after + file, before, begin, at, region) for file, before, begin, at, region in others._kept]
        self._receive, self._keeps_all = self._receive or others._receive, self._keeps_all or others._keeps_all
        self._kept = [*self._kept, *kept] if self._keeps_all else [*self._kept, *kept][: self.MOST]
        self.total += others.total
        self.bytes += others.bytes
        self.files += others.files
        self._errors |= others._errors
        self._in_memory |= others._in_memory
        self._images += others._images
        self._numbers.update(after + file for file in others._numbers)

    def unite(self, others: SkippedRegions) -> None:
        """Add the regions of another read of the same files, but for those that are here."""
        known = {(file, before, begin, region.end) for file, before, begin, _, region in self._kept}
        for file, before, begin, _, region in others._kept:
            if (file, before, begin, region.end) not in known:
                self.add(region, file, in_memory=others._in_memory)

    def to_table(self) -> pa.Table:
        """A row for each of the regions: see `ReadReport.skipped_table`."""
        return self.table(self)

    @staticmethod
    def table(regions: Iterable[SkippedRegion]) -> pa.Table:
        """A row for each of some regions: see `ReadReport.skipped_table`."""
        names = ("path", "first_record", "begin", "end", "reason", "error")
        columns = zip(*([getattr(region, name) for name in names] for region in regions), strict=True)
        values = list(columns) or [()] * len(names)
        arrays = [pa.array(column, field.type) for column, field in zip(values, _REGION, strict=True)]
        return pa.Table.from_arrays(arrays, schema=_REGION)

    @staticmethod
    def texts(regions: Iterable[SkippedRegion]) -> list[tuple[str, ...]]:
        """A row of text for each of some regions, below `HEADINGS`."""
        return [
            (
                printable(region.path, None),
                "" if region.first_record is None else f"{region.first_record:,}",
                "" if region.begin is None else f"{region.begin:,}",
                "" if region.end is None else f"{region.end:,}",
                printable(region.reason),
            )
            for region in regions
        ]

    def has_file(self, file: int) -> bool:
        """True if a region of the file with this number was left out."""
        return file in self._numbers

    def __eq__(self, other: object) -> bool:
        return self._state == other._state if isinstance(other, SkippedRegions) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def _state(self) -> dict[str, Any]:
        return {**vars(self), "_receive": None}

    def __getstate__(self) -> dict[str, Any]:
        """Another process has no call that receives them."""
        return self._state

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> SkippedRegion: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SkippedRegion]: ...
    def __getitem__(self, index: int | slice) -> SkippedRegion | Sequence[SkippedRegion]:
        if isinstance(index, slice):
            return [item[-1] for item in self._kept[index]]
        return self._kept[index][-1]

    def __repr__(self) -> str:
        return f"<{self.summary()}>"

    @property
    def _has_first_record(self) -> bool:
        """True if the bytes of the first record of a file, which may hold a schema, are lost."""
        return any(region.begin == 0 and region.error in _LOST_BYTES for region in self)

    def summary(self, *, are_types_inferred: bool = False) -> str:
        """The sums, the files and the first reason, in a sentence; with inferred types, that a schema may be lost."""
        if not self.total:
            return "nothing was left out"
        names = [f"{printable(path)} ({count:,})" for path, count in self.files.most_common(_NAMED_FILES)]
        if len(self.files) == 1:  # which has all regions
            names = [*map(printable, self.files)]
        if len(self.files) > _NAMED_FILES:
            names.append(counted(len(self.files) - _NAMED_FILES, "more file"))
        first = self[0]
        where = "" if first.begin is None else f" at byte {first.begin}"
        what = counted(self.total, "damaged region")
        if self.bytes or not self._in_memory:
            what += f" of {byte_size(self.bytes) if self.bytes else 'unknown size'}"
        if self._errors == {FeatureTypeError.__name__}:
            what = f"{counted(self.total, 'record')} with values of another feature type"
        first_is = (
            f"{'the first is ' if self.total > 1 else ''}{first.record_text}{where}: {printable(first.reason, 300)}"
        )
        lost = f"; {_FIRST_LOST}" if are_types_inferred and self._has_first_record else ""
        return f"{what} left out in {', '.join(names)}; {first_is}{lost}"

    def warn(self, issue: Callable[[str], object] | None = None, *, are_types_inferred: bool = False) -> None:
        """Tell the caller of the regions, if there are any: the one who receives them, else by a warning."""
        if self.total and self._receive is not None:
            self._receive(self)
        elif self.total and not self._keeps_all:
            summary = self.summary(are_types_inferred=are_types_inferred)
            verify_cli = "tfr verify --images=full" if self._images else "tfr verify"
            if self._in_memory:
                advice = "to list them, pass a function as on_error="
            elif self._images:
                advice = "tfr.verify(path, images='full') lists them"
            else:
                advice = "tfr verify lists them, or see open_reader(on_error=…).report.skipped"
            if issue is None:
                warn(f"{summary}; {advice}", DamagedDataWarning, f"{summary}; {verify_cli} lists them")
            else:
                issue(f"{summary}; {advice}")
