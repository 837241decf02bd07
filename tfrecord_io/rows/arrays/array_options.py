"""The keywords of calls that return arrays: how columns become arrays, and in which order rows are returned.

Options of lists hold for all columns of lists, or are dicts by column.

Tests: tests/base/options/test_options.py and tests/rows/arrays/test_representation.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar, get_args

from tfrecord_io.base import LIMITS, ReadOptions, Selection, check_choice, check_integer
from tfrecord_io.typing import ArrayLayout, Lengths, Missing, UnevenParts

MOST_PARTS = 1024


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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class IterOptions(RepresentationOptions):
    """Keywords of `tfrecord_io.iter_arrays`."""

    shuffle_buffer: int = 0
    seed: int | None = None
    epochs: int | None = 1
    drop_last: bool = False
    worker: tuple[int, int] | None = None
    uneven: UnevenParts = "keep"
    parts: int | tuple[int, int] | None = None
    bucket_by: Sequence[str] | str | None = None
    bucket_sizes: Sequence[int] | None = None
    pack: Mapping[str, int] | None = None
    cut: bool = False
    end_token: Any = None
    cu_seqlens: bool = False
    state: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None

    internal: ClassVar[frozenset[str]] = frozenset({"batch_bytes"})  # a batch for training has batch_size rows
    _none_is_unset: ClassVar[frozenset[str]] = frozenset({"on_error", "shuffle_buffer"})

    def __post_init__(self) -> None:
        if not (self.bucket_by is None and self.bucket_sizes is None and self.pack is None):
            self._check_arrangement()
        self._check_flags("drop_last", "cut", "cu_seqlens")
        self._check_cut()
        super().__post_init__()
        self._check_integer("shuffle_buffer", 0)
        self._check_integer("seed", 0, optional=True)
        self._check_integer("epochs", 1, optional=True)
        check_choice("uneven", self.uneven, get_args(UnevenParts))
        if self.worker is not None:
            self._check_worker(self.worker)
        if self.parts is not None:
            self._check_parts(self.parts)
        is_list = (
            isinstance(self.state, list | tuple) and self.state and all(isinstance(s, Mapping) for s in self.state)
        )
        if not isinstance(self.state, Mapping | None) and not is_list:
            raise TypeError(f"state={type(self.state).__name__}: expected the result of state(), or a list of several")

    def _check_worker(self, worker: Any) -> None:
        """Check `worker`, and the ways to give each of several workers as many rows."""
        if not isinstance(worker, tuple | list) or len(worker) != 2:
            raise TypeError(f"worker={worker!r}: expected (index of this worker, number of workers)")
        count = check_integer("worker", worker[1], 1, LIMITS.INT64_MAX)
        index = check_integer("worker", worker[0], 0)
        if index >= count:
            raise ValueError(f"worker={worker!r}: expected an index from 0 to {count - 1}")
        object.__setattr__(self, "worker", (index, count))
        if self.has_equal_parts and not self.damage.is_strict:
            reason = "a part that ends at damage, or leaves records out, is shorter than the others"
            raise ValueError(f"uneven={self.uneven!r} cannot be combined with on_error={self.on_error!r}: {reason}")
        if self.has_equal_parts and self.shuffle_buffer and self.seed is None and self.state is None:
            raise ValueError(
                f"uneven={self.uneven!r} with shuffle_buffer= needs the same seed= in all workers: the "
                "parts are taken from the shuffled order of the files"
            )

    def _check_parts(self, parts: Any) -> None:
        if isinstance(parts, tuple | list):
            if len(parts) != 2:
                raise TypeError(f"parts={parts!r}: expected a number of parts, or (lanes, turns)")
            object.__setattr__(self, "parts", tuple(check_integer("parts", n, 1, MOST_PARTS) for n in parts))
        else:
            check_integer("parts", parts, 1, MOST_PARTS)
        workers = 1 if self.worker is None else self.worker[1]
        if workers > 1 and self.shuffle_buffer and self.seed is None and self.state is None:
            reason = "they take their rows from one shuffled order"
            raise ValueError(f"parts= with shuffle_buffer= needs the same seed= in all workers: {reason}")

    @property
    def share(self) -> tuple[int, int]:
        """The index of this worker, and the number of workers; (0, 1) if it is the only one."""
        return self.worker or (0, 1)

    @property
    def bucketed(self) -> tuple[str, ...]:
        """The columns of `bucket_by`."""
        return () if self.bucket_by is None else tuple(Selection.check_names("bucket_by", self.bucket_by))

    @property
    def arranging(self) -> tuple[str, ...]:
        """The columns whose lengths decide which rows make a batch."""
        return self.bucketed if self.pack is None else tuple(self.pack)

    @property
    def arranges(self) -> bool:
        """True if the lengths of lists decide which rows make a batch."""
        return self.bucket_sizes is not None or self.pack is not None

    @property
    def has_layouts(self) -> bool:
        return self.arranges or super().has_layouts

    @property
    def layouts(self) -> ArrangedLayouts:
        return ArrangedLayouts(self)

    def _check_cut(self) -> None:
        if self.pack is None:
            given = {"cut": self.cut, "end_token": self.end_token, "cu_seqlens": self.cu_seqlens}
            for name, value in given.items():
                if value is not None and value is not False:
                    raise ValueError(f"{name}={value!r} is for packed rows: pass pack=, a length by column")
            return
        sizes = set(self.pack.values())
        if self.cut and len(sizes) > 1:
            raise ValueError(f"cut=True cuts all columns at the same places: pass one length, not pack={self.pack!r}")
        if self.end_token is None:
            return
        if not self.cut:
            raise ValueError(f"end_token={self.end_token!r} needs cut=True, which makes one stream of the documents")
        names = [*self.end_token] if isinstance(self.end_token, Mapping) else [*self.pack]
        if {*names} != {*self.pack}:
            raise ValueError(f"end_token={self.end_token!r}: expected a value for each column of pack=")
        for name in names:
            if not isinstance(column_value(self.end_token, name), Real | str):
                raise TypeError(f"end_token={self.end_token!r}: expected a number or a text, or a dict by column")
        tokens = {name: column_value(self.end_token, name) for name in names}
        plain = {name: token.item() if hasattr(token, "item") else token for name, token in tokens.items()}  # for JSON
        object.__setattr__(self, "end_token", plain if isinstance(self.end_token, Mapping) else plain[names[0]])

    def _check_arrangement(self) -> None:
        if (self.bucket_by is None) != (self.bucket_sizes is None):
            raise ValueError("bucket_by= and bucket_sizes= need each other: columns of lists, and the greatest lengths")
        if self.bucket_sizes is not None:
            object.__setattr__(self, "bucket_by", self.bucketed)
            if isinstance(self.bucket_sizes, str) or not isinstance(self.bucket_sizes, Iterable):
                raise TypeError(f"bucket_sizes={self.bucket_sizes!r}: expected ascending lengths, such as [128, 512]")
            sizes = tuple(check_integer("bucket_sizes", size, 1, LIMITS.INT64_MAX) for size in self.bucket_sizes)
            object.__setattr__(self, "bucket_sizes", sizes)
            if not sizes or any(size >= after for size, after in pairwise(sizes)):
                raise ValueError(f"bucket_sizes={list(sizes)}: expected ascending lengths")
        if self.pack is not None:
            if not isinstance(self.pack, Mapping) or not self.pack:
                raise TypeError(f"pack={self.pack!r}: expected a length by column, such as {{'tokens': 2048}}")
            check_by_column("pack", self.pack)
            pack = {name: check_integer("pack", size, 1, LIMITS.INT64_MAX) for name, size in self.pack.items()}
            object.__setattr__(self, "pack", pack)
        if self.arranges and self.uneven != "keep":
            reason = "the lengths of lists decide how many batches a worker has"
            advice = "pass epochs=None, and take as many batches in each worker"
            raise ValueError(f"uneven={self.uneven!r} cannot be combined with bucket_by= or pack=: {reason}; {advice}")
        if self.pack is not None and self.bucket_sizes is not None:
            raise ValueError("pack= cannot be combined with bucket_by=: packed rows have one length")
        if self.pack is not None and self.pad_to is not None:
            raise ValueError("pack= cannot be combined with pad_to=: it has the length of each packed row")
        if isinstance(self.pad_to, Mapping) and (twice := [name for name in self.bucketed if name in self.pad_to]):
            reason = f"pad_to= cannot name {twice[0]!r}, which bucket_sizes= pads"
            raise ValueError(f"{reason}; pass it for other columns")

    @property
    def has_equal_parts(self) -> bool:
        """True if several workers get the same number of records each."""
        return self.uneven != "keep" and self.worker is not None and self.worker[1] > 1


class ArrangedLayouts(Layouts):
    """How options represent lists, of which some are packed or in buckets."""

    _options: IterOptions

    def column_layouts(self) -> dict[str, ColumnLayout]:
        names = (*self._options.bucketed, *(self._options.pack or ()))
        return super().column_layouts() | {name: self.layout(name) for name in names}

    def layout(self, name: str) -> ColumnLayout:
        layout, options = super().layout(name), self._options
        packed, bucketed = name in (options.pack or ()), name in options.bucketed
        if not packed and not bucketed:
            return layout
        if packed:
            assert options.pack is not None
            length, named_by = options.pack[name], f"pack={ {name: options.pack[name]}!r}"
        else:
            assert options.bucket_sizes is not None
            length, named_by = options.bucket_sizes[-1], f"bucket_sizes={list(options.bucket_sizes)}"
        ragged = layout.ragged or "pad"
        layout = replace(layout, ragged=ragged, length=length, multiple=1, named_by=named_by, bucketed=bucketed)
        if not packed:
            return layout
        end = column_value(options.end_token, name)
        return replace(layout, packed=True, cut=options.cut, end=end, cumulative=options.cu_seqlens)
