"""Treatment of damaged data: a class for each ``on_error``, which answers all questions about it.

A call states what it takes by a function of these facts, such as `OnDamage.needs_no_report`; the list in the error for
any other value is made from the classes. So a new ``on_error`` is one class, and its row of `_BY_NAME`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, TypeGuard

from tfrecord_io.base.messages.display import for_cli
from tfrecord_io.errors import (
    CompressionError,
    CorruptRecordError,
    DecodeError,
    FeatureNotFoundError,
    FeatureTypeError,
    StoppedEarlyWarning,
    TFRecordError,
)


class OnDamage(ABC):
    """Treatment of damaged data by a read. The facts have no defaults: a new class states each of them.

    Attributes
    ----------
    receive : callable or None
        Gets the `SkippedRegions` of each read, at the end of the read, instead of a warning.
    """

    SALVAGE: ClassVar = "keep the intact records with tfr.salvage(path, target)"
    ADVICE: ClassVar = f"see on_error=, or {SALVAGE}"  # in errors about damage
    ADVICE_CLI: ClassVar = "see --on-error, or keep the intact records with tfr salvage SOURCE TARGET"

    receive: Callable[[Any], object] | None = None
    inspects = False  # true for tools that show content: see `Inspect`

    @property
    @abstractmethod
    def is_strict(self) -> bool:
        """True if every record is a row, or the read raises: rows can be counted and found without reading them."""

    @property
    @abstractmethod
    def counts_all(self) -> bool:
        """True if the numbers of records that files state are taken for numbers of rows."""

    @property
    @abstractmethod
    def goes_on(self) -> bool:
        """True if rows may be left out before others, so that the number of a row does not find it."""

    @property
    @abstractmethod
    def ends_quietly(self) -> bool:
        """True if a read ends at damage with a warning, so that pieces of the files would have other rows."""

    @property
    @abstractmethod
    def hands_over(self) -> bool:
        """True if each region that is left out has to go to a report: a call without one does not take it."""

    @staticmethod
    def is_damage(error: Exception) -> TypeGuard[TFRecordError]:
        """True if an error is about damage of a file, and good records may follow.

        Not: an error of the storage, a contradiction between schemas, too little room for intact records, or a file
        that is not a TFRecord file at all.
        """
        if not isinstance(error, CorruptRecordError | CompressionError | DecodeError | FeatureNotFoundError):
            return False
        return not error.of_memory and not error.of_other_format

    @abstractmethod
    def accept(self, error: TFRecordError, place: Hashable) -> bool:
        """True if the region of an error may be left out; its path and the `place` in the file identify it."""

    def is_taken_by_all(self) -> bool:
        """True: for calls whose result is, or has, a report with `skipped_table`."""
        return True

    def needs_no_report(self) -> bool:
        """True if no report needs to have the regions that are left out: for all other calls."""
        return not self.hands_over

    def reports_all(self) -> bool:
        """True for calls that report all damage anyway, and none of it as an error."""
        return self.is_strict or self.hands_over

    def allows_numbers(self) -> bool:
        """True for reads by number, which have no end at which regions could be reported."""
        return not (self.ends_quietly or self.hands_over)

    def is_of_files(self) -> bool:
        """True for calls that make rows of whole files."""
        return isinstance(self, Raise | Skip)

    def split_offset(self, offset: int) -> tuple[int, int]:
        """How many records an offset skips by their lengths, and how many rows it leaves out once they were decoded.

        They are decoded if damaged records do not count.
        """
        return (offset, 0) if not offset or self.is_strict else (0, offset)

    def end_read(self, error: Exception) -> str:
        """End a read at `error`: raise it, or warn and return its text."""
        if not self.ends_quietly:
            raise error
        text_cli = error.text_cli() if isinstance(error, TFRecordError) else str(error)
        from tfrecord_io.base.messages.caller_warnings import warn

        warn(f"reading stopped early: {error}", StoppedEarlyWarning, f"reading stopped early: {text_cli}")
        return str(error)

    @staticmethod
    def of(on_error: object) -> OnDamage:
        """The object for an ``on_error`` that was checked."""
        if isinstance(on_error, str):  # first: `isinstance` of an abstract class calls Python code
            return _BY_NAME[on_error]
        assert isinstance(on_error, OnDamage)
        return on_error

    @staticmethod
    def collect(receive: Callable[[Any], object]) -> OnDamage:
        """The object for ``"collect"`` that a call with a report passes down: `receive` gets the regions."""
        return Collect(receive)

    @staticmethod
    def receive_in_reader(regions: object) -> None:
        """Receive the regions of a reader, to keep all of them."""
        del regions  # its own report has them

    @staticmethod
    def inspect() -> OnDamage:
        """The object for tools that show content: see `Inspect`."""
        return Inspect()

    @staticmethod
    def names(takes: Takes | None = None) -> tuple[str, ...]:
        """The names of each ``on_error`` that a call takes, by default all.

        >>> OnDamage.names(OnDamage.needs_no_report)
        ('raise', 'stop', 'skip')
        """
        return tuple(name for name, damage in _BY_NAME.items() if takes is None or takes(damage))

    @staticmethod
    def check(value: object, takes: Takes | None = None, advice: str | None = None) -> Any:
        """Return an ``on_error``, a callable as an `Ask`; ValueError for one that does not exist, or that is not taken.

        `advice` is what to do instead; by default, which call takes an ``on_error`` that needs a report.
        """
        damage: OnDamage | None
        if isinstance(value, str):
            damage = _BY_NAME.get(value)
        elif callable(value):
            damage = Ask(value)
        else:
            damage = value if isinstance(value, OnDamage) else None
        if damage is None or (takes is not None and not takes(damage)):
            functions = " or a function that takes the error" if takes is None or takes(Ask(bool)) else ""
            text = f"expected one of {', '.join(map(repr, OnDamage.names(takes)))}{functions}"
            needs_report = advice is None and damage is not None and damage.hands_over
            hints = (_COLLECTING, _COLLECTING_CLI) if needs_report else (advice, advice)
            own, own_cli = ("; ".join(filter(None, (text, hint))) for hint in hints)
            raise for_cli(ValueError(f"on_error={value!r}: {own}"), f"--on-error {value}: {own_cli}")
        return damage if callable(value) else value


Takes = Callable[[OnDamage], bool]
"""Decides whether a call takes an ``on_error``, by its facts."""


class Raise(OnDamage):
    """``"raise"``: the error ends the read."""

    is_strict, counts_all, goes_on, ends_quietly, hands_over = True, True, False, False, False

    def accept(self, error: TFRecordError, place: Hashable) -> bool:
        return False


class Stop(OnDamage):
    """``"stop"``: a warning ends the read."""

    is_strict, counts_all, goes_on, ends_quietly, hands_over = False, False, False, True, False

    def accept(self, error: TFRecordError, place: Hashable) -> bool:
        return False


class Skip(OnDamage):
    """``"skip"``: damaged regions are left out; a warning at the end counts them."""

    is_strict, counts_all, goes_on, ends_quietly, hands_over = False, False, True, False, False

    def accept(self, error: TFRecordError, place: Hashable) -> bool:
        return True


class Collect(OnDamage):
    """``"collect"``: damaged regions are left out, and the report of the call has a row for each.

    A call that has the report passes such an object down instead of the name, with `receive`. Then all regions are
    kept, and what it calls needs no report.
    """

    is_strict, counts_all, goes_on, ends_quietly = False, False, True, False

    def __init__(self, receive: Callable[[Any], object] | None = None) -> None:
        self.receive = receive

    @property
    def hands_over(self) -> bool:
        return self.receive is None

    def accept(self, error: TFRecordError, place: Hashable) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Collect) or other == "collect"

    def __hash__(self) -> int:
        return hash("collect")

    def __repr__(self) -> str:
        return repr("collect")

    def __str__(self) -> str:
        return "collect"

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process has no report."""
        return Collect, ()


class Ask(OnDamage):
    """A callable, which is asked once about each region, however often the files are read.

    The options of a dataset hold it, so that all reads of the dataset, and of pieces in this process, leave out the
    same.
    """

    is_strict, counts_all, goes_on, ends_quietly, hands_over = False, False, True, False, False

    def __init__(self, function: Callable[[TFRecordError], object]) -> None:
        self.function = function
        self._answers: dict[Hashable, bool] = {}

    def accept(self, error: TFRecordError, place: Hashable) -> bool:
        """True if the callable agrees; the same region with an error of another class is another question."""
        region = error.region
        assert region is not None
        key = (region.path, place, region.error)
        if key not in self._answers:
            self._answers[key] = bool(self.function(error))
        return self._answers[key]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Ask) and self.function == other.function

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process has files of its own, and asks by itself."""
        return type(self), (self.function,)


class Inspect(Ask):
    """Tools that show content: only records with values of another feature type than most others are left out."""

    is_strict, counts_all, goes_on, ends_quietly, hands_over = False, True, True, False, False
    inspects = True

    def __init__(self, function: Callable[[TFRecordError], object] | None = None) -> None:
        super().__init__(_is_of_other_type if function is None else function)


def _is_of_other_type(error: Exception) -> bool:
    """True if an intact record has a value of another feature type than its column."""
    return isinstance(error, FeatureTypeError)


_BY_NAME: dict[str, OnDamage] = {"raise": Raise(), "stop": Stop(), "skip": Skip(), "collect": Collect()}
NAMES = tuple(_BY_NAME)
_COLLECTING = "tfr.open_reader(source, on_error='collect').report.skipped_table() lists what is left out"
_COLLECTING_CLI = "tfr convert SOURCE TARGET --on-error collect lists what is left out"
