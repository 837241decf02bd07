"""The keywords of training: the order of rows, and their division among workers, batches, buckets and packed rows.

Tests: tests/base/options/test_options.py and tests/rows/arrays/test_stacked_or_ragged.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar, get_args

from tfrecord_io.base import LIMITS, Selection, check_choice, check_integer
from tfrecord_io.rows.arrays.array_options import (
    ColumnLayout,
    Layouts,
    RepresentationOptions,
    check_by_column,
    column_value,
)
from tfrecord_io.typing import UnevenParts

_MOST_PARTS = 1024


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
            object.__setattr__(self, "parts", tuple(check_integer("parts", n, 1, _MOST_PARTS) for n in parts))
        else:
            check_integer("parts", parts, 1, _MOST_PARTS)
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
    def batch_units(self) -> int:
        """How many units of the order a batch has: its rows; 1 where batches that lengths make are the units."""
        return 1 if self.arranges else self.batch_size

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
