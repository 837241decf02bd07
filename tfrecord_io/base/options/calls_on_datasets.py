"""Keywords of a dataset: which calls take them from a dataset that they read, and which refuse them.

Tests: tests/read/test_sources_options.py.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Set
from typing import Any, NamedTuple

from tfrecord_io.base.options.selection import OF_DATASETS, Selection

_SOURCE = re.compile("InputPath|FilesLike|OpenedDataset")  # the types of a parameter that a dataset is passed to
_OF_ROWS = Selection.KEYWORDS - {"columns"}
_OF_ALL_FILES = Selection.KEYWORDS | {"on_error", "check_crc", "split", "allow_missing_shards"}
_OF_PLAIN_FILES = frozenset({"build_index", "check_indexes", "open_random", "write_indexes"})
REFUSED: dict[str, frozenset[str]] = {  # by call: what it does not take of what a dataset states
    **dict.fromkeys(("adopt", "delete"), _OF_ALL_FILES),
    "compact": _OF_ALL_FILES | {"schema", "schema_overrides"},
    "copy": _OF_ALL_FILES | {"compression", "limits"},
    "salvage": Selection.KEYWORDS | {"on_error", "split"},
    "verify": Selection.KEYWORDS | {"on_error", "check_crc"},
    **dict.fromkeys(("check_indexes", "write_indexes"), Selection.KEYWORDS | {"compression", "on_error"}),
    "build_index": Selection.KEYWORDS | {"compression", "on_error", "include_file_paths"},
    "open_random": _OF_ROWS | {"compression", "threads"},  # which makes no difference
    "read_earth_engine": _OF_ROWS,
    "infer_schema": frozenset({"schema", "include_file_paths"}),
    "report": frozenset({"include_file_paths"}),
    "RecordReader": frozenset({"columns"}),
    **dict.fromkeys(
        ("dedupe", "merge", "sample", "shuffle", "split"), frozenset({"columns", "check_crc", "include_file_paths"})
    ),
}
_REPORTING_ALL = frozenset({"salvage", "verify"})  # calls that report all damage: their ``on_error`` may be "collect"


class Refusal(NamedTuple):
    """Options of a dataset that a call refuses.

    >>> sorted(Refusal.of("infer_schema").keywords)
    ['include_file_paths', 'schema']
    """

    keywords: Set[str]
    of_plain_files: bool = False  # of which None is the only ``compression=``
    reports_all: bool = False  # the damage, as "collect" does

    @staticmethod
    def of(call: str) -> Refusal:
        """The refusals of the call of this name."""
        keywords = REFUSED.get(call, frozenset[str]())
        return Refusal(keywords, of_plain_files=call in _OF_PLAIN_FILES, reports_all=call in _REPORTING_ALL)


def is_method(call: Callable[..., Any]) -> bool:
    """True if a call is a method of datasets, some of which adapters have as functions of a scan."""
    return call.__qualname__.startswith("Dataset.") or call.__name__.startswith("to_")


def names_up_to_source(call: Callable[..., Any]) -> list[str]:
    """The names of the parameters of a call up to the one that takes a dataset; empty if none does."""
    names = list[str]()
    for parameter in inspect.signature(call).parameters.values():
        names += [parameter.name] if parameter.name != "self" else []
        if _SOURCE.search(str(parameter.annotation)):
            return names
    return []


def kept_by_dataset(call: Callable[..., Any]) -> Set[str]:
    """The keywords that a call which reads a source takes from a dataset alone.

    A filesystem is what the call's ``storage_options=`` takes.
    """
    if not is_method(call) and not names_up_to_source(call):
        return frozenset()
    keywords = OF_DATASETS - Refusal.of(call.__qualname__.split(".")[0]).keywords
    return keywords - {"filesystem"} if "storage_options" in inspect.signature(call).parameters else keywords
