"""The keywords of calls that return arrays: how columns become arrays.

Options of lists hold for all columns of lists, or are dicts by column.

Tests: tests/base/options/test_options.py and tests/rows/arrays/test_stacked_or_ragged.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from tfrecord_io.base import LIMITS, ReadOptions, check_choice, check_integer
from tfrecord_io.typing import ArrayLayout, Lengths, Missing


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """How the lists of one column are represented."""

    ragged: ArrayLayout | None = None  # the form of the arrays
    pad_value: Any = 0  # in padded rows
    max_length: int | None = None  # longer lists are truncated
    from_left: bool = False  # truncated lists keep their last values, not their first
    length: int | None = None  # of each row of a padded array; None: that of the longest list
    multiple: int = 1  # without `length`: the next multiple of this
    bucketed: bool = False  # rows have the length of their bucket
    packed: bool = False  # a row holds several lists
    cut: bool = False  # a packed row may begin and end inside a list
    end: Any = None  # the value after each list that is cut
    cumulative: bool = False  # with the cumulative lengths of the lists of a batch
    named_by: str | None = None  # the option that states `length`, and which a longer list contradicts


def column_value(value: Any, name: str, default: Any = None) -> Any:
    """The value of an option for a column."""
    return value.get(name, default) if isinstance(value, Mapping) else value


def length_and_mode(value: Any, mode: str) -> tuple[int | None, bool]:
    """The number of a length, and whether it is in a tuple with `mode`.

    >>> length_and_mode(512, "left"), length_and_mode((512, "left"), "left")
    ((512, False), (512, True))
    """
    return (value[0], True) if isinstance(value, tuple | list) else (value, False)


def check_lengths(name: str, value: Any, mode: str) -> Any:
    """The lengths, numbers as `int`; TypeError or ValueError unless each is a positive integer or (integer, mode)."""
    check_by_column(name, value)
    if isinstance(value, Mapping):
        return {column: _check_length(name, length, mode) for column, length in value.items()}
    return _check_length(name, value, mode)


def _check_length(name: str, value: Any, mode: str) -> Any:
    if not isinstance(value, tuple | list):
        return check_integer(name, value, 1, LIMITS.INT64_MAX, optional=True)
    if len(value) != 2 or value[1] != mode:
        raise ValueError(f"{name}={value!r}: expected a length, or (length, {mode!r})")
    return check_integer(name, value[0], 1, LIMITS.INT64_MAX), mode


def check_by_column(name: str, value: object) -> None:
    """Raise TypeError for a dict whose keys are not names of columns."""
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        raise TypeError(f"{name}={value!r}: expected names of columns as keys")


def has_matrices(ragged: Any) -> bool:
    """True if a ``ragged=`` asks for matrices of scipy.sparse."""
    return "csr" in (ragged.values() if isinstance(ragged, Mapping) else [ragged])


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class RepresentationOptions(ReadOptions):
    """Keywords of the representation of columns as arrays; see `tfrecord_io.read_arrays`."""

    ragged: ArrayLayout | Mapping[str, ArrayLayout] | None = None
    pad_value: Any = 0
    max_length: Lengths | Mapping[str, Lengths] | None = None
    pad_to: Lengths | Mapping[str, Lengths] | None = None
    missing: Missing = "error"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("missing", self.missing, get_args(Missing))
        states_value = not (isinstance(self.pad_value, int) and self.pad_value == 0)
        if not self.has_layouts and not states_value:
            return
        check_by_column("ragged", self.ragged)
        for ragged in self.ragged.values() if isinstance(self.ragged, Mapping) else [self.ragged]:
            check_choice("ragged", ragged, (None, *get_args(ArrayLayout)))
        check_by_column("pad_value", self.pad_value)
        object.__setattr__(self, "max_length", check_lengths("max_length", self.max_length, "left"))
        object.__setattr__(self, "pad_to", check_lengths("pad_to", self.pad_to, "multiple"))
        # "": of the columns that no option names.
        layouts = {"": self.layouts.layout(""), **self.layouts.column_layouts()}
        for name, layout in layouts.items():
            _check_layout(f" of {name!r}" if name else "", layout)
            if layout.ragged != "pad" and isinstance(self.pad_value, Mapping) and name in self.pad_value:
                raise ValueError(f"pad_value= names {name!r}, which is not padded: pass ragged={ {name: 'pad'}!r}")
        if states_value and all(layout.ragged != "pad" for layout in layouts.values()):
            raise ValueError(f"pad_value={self.pad_value!r} has no effect, as no column is padded: pass ragged='pad'")

    @property
    def has_layouts(self) -> bool:
        """True if an option says how lists are represented."""
        by_column = isinstance(self.pad_value, Mapping)  # it names columns; one value for all asks for no padding
        return by_column or not (self.ragged is None and self.max_length is None and self.pad_to is None)

    @property
    def layouts(self) -> Layouts:
        """How lists are represented."""
        return Layouts(self)

    @staticmethod
    def refuse_matrices(ragged: Any, library: str) -> None:
        """Raise ValueError for matrices of scipy.sparse, which a library does not take."""
        if has_matrices(ragged):
            advice = 'pass ragged="offsets", or take the batches of iter_arrays(ragged="csr")'
            raise ValueError(f"ragged='csr' makes matrices of scipy, not tensors of {library}; {advice}")


class Layouts:
    """How options represent lists."""

    def __init__(self, options: RepresentationOptions) -> None:
        self._options = options

    def column_layouts(self) -> dict[str, ColumnLayout]:
        """The layouts of the columns that options name."""
        options = self._options
        by_column = (options.ragged, options.pad_value, options.max_length, options.pad_to)
        names = [name for value in by_column if isinstance(value, Mapping) for name in value]
        return {name: self.layout(name) for name in dict.fromkeys(names)}

    def layout(self, name: str) -> ColumnLayout:
        """How the lists of a column are represented."""
        options = self._options
        max_length, from_left = length_and_mode(column_value(options.max_length, name), "left")
        length, is_multiple = length_and_mode(column_value(options.pad_to, name), "multiple")
        ragged = column_value(options.ragged, name)
        return ColumnLayout(
            ragged="pad" if ragged is None and length is not None else ragged,
            pad_value=column_value(options.pad_value, name, 0),
            max_length=max_length,
            from_left=from_left,
            length=None if is_multiple else length,
            multiple=length or 1 if is_multiple else 1,
            named_by=None if length is None else f"pad_to={column_value(options.pad_to, name)!r}",
        )


def _check_layout(where: str, layout: ColumnLayout) -> None:
    """Raise ValueError for options that contradict each other; `where` names the column in the message."""
    if layout.named_by is not None and layout.ragged != "pad":
        raise ValueError(f"ragged={layout.ragged!r}{where} cannot be combined with {layout.named_by}, which pads")
    if layout.ragged == "csr" and layout.max_length is not None:
        raise ValueError(f"ragged='csr'{where} has all values, and takes no max_length=")
    room = None if layout.cut else layout.length
    if layout.max_length is not None and room is not None and layout.max_length > room:
        raise ValueError(f"max_length={layout.max_length}{where} is more than {layout.named_by} has room for")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class ArrayOptions(RepresentationOptions):
    """Keywords of `tfrecord_io.read_arrays`."""

    out: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.out, Mapping | None):
            raise TypeError(f"out={type(self.out).__name__}: expected a dict of arrays by column")
        if self.out is not None and has_matrices(self.ragged):
            raise ValueError("ragged='csr' makes matrices of its own, and takes no out=")
        if self.out is not None and self.pad_to is not None:
            reason = f"pad_to={self.pad_to!r} cannot be combined with out=, whose arrays have a length"
            raise ValueError(f"{reason}: pass ragged='pad' in its place")
