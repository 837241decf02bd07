"""Options of a call: from its keywords, and from the datasets that it reads.

Tests: tests/read/test_sources_options.py and tests/base/options/test_options.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from tfrecord_io.base import DatasetOptions, Options, ScanOptions, TransferOptions

if TYPE_CHECKING:
    from tfrecord_io.read.scan import Scan

AnyOptions = TypeVar("AnyOptions", bound=Options)

PACE = frozenset({"threads", "progress", "batch_size", "batch_bytes"})  # a call's take the place of a dataset's
PLACES = frozenset({"storage_options", "filesystem"})
_OWN_OF_DATASETS = frozenset({"split", "allow_missing_shards"})  # datasets of one list may differ in these
_FINDING = _OWN_OF_DATASETS | PLACES  # the files of a dataset were found by these
_OF_TARGETS = frozenset({"compression"}) | PLACES  # where a call writes files, too
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_WRITE_FIRST = "pass a dataset without it, or write its rows first with tfr.write_tfrecord(dataset, path)"
_OTHERWISE = {  # by call: how it reads some rows
    "open_random": "records.select(filters) finds those that meet a condition",
    "read_earth_engine": "an image has all patches",
}


def options_from_call(
    kind: type[AnyOptions],
    call: Callable[..., Any] | None,
    source: object,
    decided: Mapping[str, Any] = _NOTHING,
    /,
    **keywords: Any,
) -> AnyOptions:
    """Make the options of a call: its keywords take precedence over `decided`, and both over those of its datasets.

    `kind` is the class of the options. `call` is the public function, which errors name, and which may refuse options
    of datasets (`DatasetOptions.refused_by`). A keyword that is UNSET has the value of the datasets in `source`, and
    without any its default.

    TypeError for a keyword that does not exist, or a value of a wrong type; ValueError for a value out of range, for
    an option of a dataset that the call refuses, and for one that a dataset decides and the call states differently.
    """
    stated = kind.stated(keywords)
    datasets = datasets_in(source)
    if not datasets:
        return kind(**{**decided, **stated})
    if "columns" in kind.__dataclass_fields__ and isinstance(source, list | tuple):
        columns = _common_columns(source)
        if columns is not None and stated.get("columns") is not None:
            raise ValueError("datasets of a list select columns: tfr.dataset([…]).select(…) selects of these")
        decided = {**decided, "columns": columns}
    if call is not None:
        refused = DatasetOptions.refused_by(call.__name__).keywords
        for dataset in datasets:
            refuse_options(dataset, call.__name__, refused)
    carried = _options_of_datasets(kind, datasets)
    options = kind(**{**carried, **decided, **stated})
    keeps_all = all(dataset.is_as_stated for dataset in datasets)
    is_fixed = not keeps_all or (isinstance(source, list | tuple) and any(d.row_selection for d in datasets))
    for name in sorted(stated.keys() & carried.keys() - PACE):
        is_binding = is_fixed or name in _FINDING or carried[name] != getattr(type(datasets[0].stated), name)
        if getattr(options, name) != carried[name] and is_binding:
            raise differing(name, call)
    return options


def datasets_in(source: object) -> list[Scan]:
    """The datasets, and the pieces of them, in what a call reads."""
    if isinstance(source, str | os.PathLike):
        return []
    from tfrecord_io.read.scan import Scan

    parts = source if isinstance(source, list | tuple) else [source]
    return [part for part in map(Scan.unwrap, parts) if isinstance(part, Scan)]


def check_equal(options: Sequence[Options], names: Iterable[str]) -> None:
    """Raise ValueError if datasets read together differ in one of these options."""
    first, *later_options = options
    for later in later_options:
        for name in names:
            if getattr(later, name) != getattr(first, name):
                advice = f"open them with the same, tfr.dataset(path, {name}=…)"
                raise ValueError(f"the datasets differ in {name}=: {advice}")


def differing(name: str, call: Callable[..., Any] | None = None) -> ValueError:
    """The error for a keyword that a dataset decides, of which the call states another value."""
    reason = f"{name}= differs from that of the dataset, which says how its files are read"
    return ValueError(f"{'' if call is None else f'{call.__name__}: '}{reason}: tfr.dataset(path, {name}=…)")


def pace_options(options: ScanOptions) -> dict[str, Any]:
    """The options of a read that a call may state instead of those of a dataset; a report gets what that collects."""
    names = PACE if options.damage.receive is None else PACE | {"on_error"}
    return {name: getattr(options, name) for name in names}


def add_path_column(names: tuple[str, ...], paths: str | None) -> tuple[str, ...]:
    """The ``columns=`` selecting a dataset's columns, without the column of paths if the names lack it."""
    return names if paths is None or paths in names else (*names, paths, f"!{paths}")


def _options_of_datasets(kind: type[Options], datasets: Sequence[Scan]) -> dict[str, Any]:
    """The options that datasets bring to a call; ValueError if the datasets differ in one."""
    first = datasets[0].stated
    writes = issubclass(kind, TransferOptions)
    names = {f.name for f in fields(first)} & {f.name for f in fields(kind)} - kind.internal
    names -= _OF_TARGETS if writes else frozenset()
    if writes and "check_crc" in kind.__dataclass_fields__:
        names |= {"compression"}  # that of what is read
    carried = {name: getattr(first, name) for name in names}
    reads = "reading" in kind.__dataclass_fields__
    compared = first.__dataclass_fields__.keys() - PLACES if reads else carried.keys()
    check_equal([dataset.stated for dataset in datasets], sorted(compared - PACE - _OWN_OF_DATASETS))
    if writes:
        carried["source_storage"] = first.storage
    if reads:
        carried["reading"] = first
    return carried


def refuse_options(dataset: Scan, call: str, names: Set[str]) -> None:
    """Raise ValueError for options that a dataset states and a call refuses."""
    advice, refusal = _OTHERWISE.get(call, _WRITE_FIRST), DatasetOptions.refused_by(call)
    if "filters" in names and dataset.row_selection:
        raise ValueError(
            f"{call} works on whole files, but rows of the dataset are selected ({dataset.row_selection}): {advice}"
        )
    if "columns" in names and dataset.chooses_columns:
        raise ValueError(f"{call} works on whole records, but columns of the dataset are selected: {advice}")
    for name in sorted(dataset.stated.changes.keys() & names - PACE):
        if name == "compression" and refusal.of_plain_files:
            if dataset.stated.compression is None:
                continue
            advice = "only plain files have records by number; tfr.convert(dataset, target) writes them"
        if name == "on_error" and refusal.reports_all and dataset.stated.damage.hands_over:
            continue
        raise ValueError(f"{call} takes no {name}= of a dataset: {advice}")


def _common_columns(parts: Sequence[Any]) -> tuple[str, ...] | None:
    """The columns that are selected of all datasets of a list; None if all columns of each are."""
    datasets = datasets_in(parts)
    names = {tuple(dataset.schema.names) for dataset in datasets}  # first: a filter may need columns that are left out
    chosen = [dataset.chooses_columns for dataset in datasets]
    if any(chosen) and (not all(chosen) or len(names) > 1 or len(datasets) < len(parts)):
        raise ValueError("the parts of a list have other columns selected: tfr.dataset([…]).select(…) selects of all")
    return add_path_column(names.pop(), datasets[0].stated.include_file_paths) if any(chosen) else None
