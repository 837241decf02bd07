"""Names of other libraries: which keyword or method of this one is meant by one that does not exist."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Sequence
from os import PathLike
from typing import Any

from tfrecord_io.display import LateText, counted


def _by_name(names: dict[str, str]) -> dict[str, str]:
    """The texts of a table by name, whose keys are several names each."""
    return {name: text for several, text in names.items() for name in several.split()}


_OTHER_NAMES = {  # by keyword: what it is called in pandas, polars, Arrow, TensorFlow, PyTorch
    "batch_size": "batch batchsize chunksize chunk_size batch_rows row_group_size",
    "bucket_by": "group_by_length length_column",
    "check_crc": "verify verify_crc check_integrity verify_checksum",
    "columns": "usecols features fields names feature_names select",
    "compression": "compression_type codec",
    "compression_level": "compresslevel level",
    "dtype_backend": "backend",
    "drop_last": "drop_remainder",
    "delimiter": "sep",
    "epochs": "num_epochs repeat n_epochs infinite",
    "evolve": "merge_schema mergeschema schema_mode schema_evolution",
    "filesystem": "fs",
    "filters": "filter where predicate query condition",
    "fraction": "frac",
    "fractions": "test_size train_size",
    "include_file_paths": "path_column file_column filename",
    "index": "preserve_index",
    "key": "key_column key_feature_name on",
    "length": "size window window_size",
    "limit": "nrows n_rows lines num_rows max_rows head take n count",
    "limits": "max_record_bytes max_features max_expansion max_decompression_ratio",
    "max_length": "max_len max_seq_length truncate truncation",
    "max_shard_bytes": "max_shard_size max_file_size shard_size",
    "missing": "fill_value na_value",
    "offset": "skiprows skip_rows skip start",
    "on_error": "errors ignore_errors on_bad_lines",
    "mode": "channels overwrite no_overwrite no_clobber exist_ok if_exists exists existing_data_behavior "
    "partition_overwrite_mode partitionoverwritemode",
    "overwrite_where": "predicate replace_where replacewhere",
    "pad_to": "pad_to_multiple_of",
    "pad_value": "padding_value padding_values",
    "progress": "verbose progress_bar",
    "ragged": "pad padding",
    "record_type": "example_type",
    "schema": "feature_description description features_description types parse_dates",
    "schema_overrides": "dtype dtypes column_types astype",
    "seed": "random_state",
    "shards": "num_shards n_shards num_files partitions npartitions",
    "shuffle_buffer": "shuffle buffer_size shuffle_buffer_size shuffle_size shuffle_queue_size",
    "state": "checkpoint resume state_dict",
    "stop": "stopping_strategy stop_on_empty_dataset",
    "update": "delete sync",
    "verify": "checksum",
    "weights": "probabilities probs",
    "worker": "num_workers workers rank world_size shard shard_index num_processes num_shards",
    "threads": "n_jobs num_threads n_threads num_workers workers use_threads num_parallel_reads num_parallel_calls",
}
_OF_A_LOADER = dict.fromkeys(  # which says how many there are, and `worker` which one of them it is
    ("num_workers", "workers"),
    "did you mean worker=? It is (i, n), for the i-th of n processes; to_torch is for a DataLoader(num_workers=n);",
)
_METHODS = _by_name(  # by attribute of datasets and readers of other libraries: what does it here
    {
        "sample random_sample": "tfr.sample(path, target, n=…) writes random records",
        "shuffle batch repeat": (
            "iter_arrays(batch_size=…, shuffle_buffer=…, epochs=…), to_torch and to_tf do this; "
            "tfr.shuffle writes files"
        ),
        "map apply map_batches with_columns assign transform": (
            "change the arrays in a loop over iter_arrays(batch_size=…), or call to_tf() or to_hf(), which have map"
        ),
        "cache prefetch persist interleave": (
            "iter_arrays reads ahead by itself; keep the rows in memory by to_arrays() or to_table()"
        ),
        "to_keras as_dataset to_tensorflow": "call to_tf(batch_size=…), whose result model.fit takes",
        "dataloader to_dataloader to_pytorch": "torch.utils.data.DataLoader(ds.to_torch(…)) takes it",
        "as_numpy_iterator as_numpy iter_batches iter_rows iterrows padded_batch": "call iter_arrays(batch_size=…)",
        "to_numpy to_dict to_jax": "call to_arrays(), or iter_arrays(batch_size=…) for batches",
        "to_arrow to_pyarrow": "call to_table(), or to_batches() for batches",
        "to_df to_dataframe": "call to_pandas()",
        "shard": "iter_arrays(batch_size=…, worker=(i, n)) reads the i-th of n shares",
        "train_test_split random_split": "tfr.split(ds, target, fractions=…) writes the parts",
        "tail": "tfr.open_random(path)[-n:] has the last rows",
        "num_rows shape height count cardinality": "call count_rows()",
        "column_names dtypes names element_spec": "schema has the names and types, columns the names",
        "where query": "call filter()",
        "drop drop_columns remove_columns": "call select(['*', '!name'])",
        "collect": "call to_table(), to_pandas() or to_polars()",
        "write save to_tfrecord sink": "tfr.write_tfrecord(ds, path) writes the rows",
        "to_csv to_parquet to_json write_parquet": "tfr.convert(path, target) writes other formats",
        "skip": "tfr.dataset(path, offset=n) leaves out the first rows",
        "concat concatenate union": "a + b joins two datasets",
    }
)
_OF_OTHERS = {  # by type: what an object that is not a dataset has instead of it
    "Reader": _by_name(
        {
            "to_pandas to_df df collect": "call read_pandas()",
            "read to_table to_arrow read_table fetchall": "call read_all()",
            "to_polars": "call polars.from_arrow(reader)",
            "columns column_names names dtypes": "it is schema.names",
            "num_rows count_rows shape": "the number of rows is not known; tfr.count(path)",
            "iter_arrays to_numpy to_arrays map batch shuffle": "tfr.dataset(path) has it",
        }
    ),
    "RecordReader": _by_name(
        {
            "read readline": "call next(reader), or loop over it",
            "read_all readlines as_numpy_iterator": "list(reader) has all records",
            "take head": "pass tfr.dataset(path, limit=n)",
            "skip": "pass tfr.dataset(path, offset=n)",
            "map batch shuffle repeat": "tfr.iter_arrays(path, batch_size=…) parses, shuffles and batches Examples",
        }
    ),
    "ArrayIterator": _by_name(
        {
            "state_dict get_state save": "call state()",
            "load_state_dict set_state load_state": "call restore(state), or pass state= to a new iterator",
            "reset": "an iterator makes one pass; epochs=n makes n, and a new one begins again",
        }
    ),
}
_ELSEWHERE = {  # by keyword of a stream: how calls that return all records do without it
    **dict.fromkeys(("batch_size", "batch_bytes"), "tfr.open_reader reads in batches"),
    "filters": "tfr.dataset(path).filter(…) reads the rows that meet a condition",
}
# By keyword of reading: the method of a dataset that does the same.
_BEFORE = {"columns": "select(…)", "filters": "filter(…)", "limit": "limit(…)", "offset": "offset(…)"}
_OF_SOURCES = frozenset("path paths file files filename filenames filepath filepath_or_buffer src input".split())
_OF_LIMITS = {
    "max_record_bytes": "record_bytes",
    "max_features": "features",
    "max_expansion": "expansion_bytes",
    "max_decompression_ratio": "decompression_ratio",
}
_OF_ALL_ROWS = ("read_tfrecord", "read_table", "read_arrays", "infer_schema", "open_random")
_OF_TRAINING = {"batch_size", "shuffle_buffer", "seed", "epochs", "drop_last", "worker", "rank", "uneven", "state"}
_OF_TRAINING |= {"ragged", "missing", "bucket_by", "bucket_sizes", "pack"}
_OF_LIBRARIES = {  # by call: what does the same as a keyword of training that it does not have
    "to_torch": "each iteration is an epoch of one process, and has state_dict()",
    "to_torch_map": "a sampler and a DataLoader shuffle, share and batch rows by number; to_torch streams them",
    "to_tf": "each iteration is an epoch, and repeat(n) of the dataset has several; iter_arrays(state=…) resumes",
    "to_grain": "the datasets of Grain shuffle, repeat, share, batch and resume; iter_arrays makes padded batches",
    "to_hf": "its streams shuffle, batch, share and resume by themselves; to_torch, to_tf and iter_arrays do this",
}
_MODES: dict[tuple[str, object], str] = {  # by keyword of another library and its value
    **dict.fromkeys((("overwrite", True), ("exist_ok", True), ("if_exists", "replace")), "overwrite"),
    **dict.fromkeys((("overwrite", False), ("exist_ok", False), ("if_exists", "fail")), "error"),
    **dict.fromkeys(
        (("existing_data_behavior", "delete_matching"), ("partition_overwrite_mode", "dynamic")), "overwrite_partitions"
    ),
    **dict.fromkeys((("append", True), ("if_exists", "append"), ("exists", "append")), "append"),
}
OF_DATASETS: set[str] = set()  # the keywords of reading, which `tfrecord_io.options.read` adds
_SOURCE = re.compile("InputPath|FilesLike|OpenedDataset")  # the types of a parameter that a dataset is passed to
NO_APPEND = "nothing is appended to a file: write another one next to it, and read both by their directory or a glob"


def _meant_mode(name: str, value: object, call: Callable[..., Any] | None) -> str | None:
    """What the keyword of another library says of existing output, in words of `mode`; None if that is not clear."""
    mode = _MODES.get((name, value)) if isinstance(value, str | bool) else None
    parameter = None if call is None else inspect.signature(call).parameters.get("mode")
    if mode == "append" and parameter is not None and not re.search("append|WriteMode", str(parameter.annotation)):
        return f": {NO_APPEND};"
    return None if mode is None else f": did you mean mode={mode!r}?"


def _instead(call: Callable[..., Any] | None, name: str) -> str | None:
    """What to use instead of a keyword that a call does not have: another call, or the library that it is for."""
    if call is not None and call.__name__ == "open_writer" and name in ("record_dim", "overwrite_where"):
        return "write_tfrecord has it, and takes an iterable of tables, too"
    return _OF_LIBRARIES.get(call.__name__) if call is not None and name in _OF_TRAINING else None


def meant_keywords(name: str) -> list[str]:
    """The keywords that have this name in other libraries.

    >>> meant_keywords("nrows"), meant_keywords("num_workers")
    (['limit'], ['worker', 'threads'])
    """
    meant = [own for own, others in _OTHER_NAMES.items() if name.lower() in others.split()]
    return [*meant, "storage_options"] if "filesystem" in (name, *meant) else meant  # which takes a filesystem, too


OF_ROWS = frozenset({"filters", "limit", "offset"})
OF_SELECTION = frozenset({"columns"}) | OF_ROWS
_OF_ALL_FILES = OF_SELECTION | {"on_error", "check_crc", "split", "allow_missing_shards"}
OF_PLAIN_FILES = frozenset({"build_index", "check_indexes", "open_random", "write_indexes"})
REFUSED: dict[str, frozenset[str]] = {  # by call: what it does not take of what a dataset states
    **dict.fromkeys(("adopt", "delete"), _OF_ALL_FILES),
    "compact": _OF_ALL_FILES | {"schema", "schema_overrides"},
    "copy": _OF_ALL_FILES | {"compression", "limits"},
    "salvage": OF_SELECTION | {"on_error", "split"},  # all damage is reported
    "verify": OF_SELECTION | {"on_error", "check_crc"},
    **dict.fromkeys(("check_indexes", "write_indexes"), OF_SELECTION | {"compression", "on_error"}),
    "build_index": OF_SELECTION | {"compression", "on_error", "include_file_paths"},
    "open_random": OF_ROWS | {"compression", "threads"},  # which makes no difference
    "read_earth_engine": OF_ROWS,
    "infer_schema": frozenset({"schema", "include_file_paths"}),
    "report": frozenset({"include_file_paths"}),
    "RecordReader": frozenset({"columns"}),
    **dict.fromkeys(
        ("dedupe", "merge", "sample", "shuffle", "split"), frozenset({"columns", "check_crc", "include_file_paths"})
    ),
}


def of_dataset(call: Callable[..., Any]) -> dict[str, str]:
    """How a call that reads a source passes the keywords of reading to `tfrecord_io.dataset`, by name.

    A filesystem is what its own ``storage_options=`` takes.
    """
    if not _is_method(call) and not _up_to_source(call):
        return {}
    taken = OF_DATASETS - REFUSED.get(_name(call), frozenset())
    if "storage_options" in inspect.signature(call).parameters:
        taken = taken - {"filesystem"}
    return {name: f"tfr.dataset(…, {name}={{}})" for name in taken}


def _up_to_source(call: Callable[..., Any]) -> list[str]:
    """The names of the parameters of a call up to the one that takes a dataset; empty if none does."""
    names = list[str]()
    for parameter in inspect.signature(call).parameters.values():
        names += [parameter.name] if parameter.name != "self" else []
        if _SOURCE.search(str(parameter.annotation)):
            return names
    return []


def _for_dataset(name: str, value: object, call: Callable[..., Any] | None) -> str | None:
    """How to say a keyword of reading, which `call` does not have, to `tfrecord_io.dataset`."""
    if call is None or _is_method(call) or name not in of_dataset(call):
        return None
    shown = repr(value) if isinstance(value, str | int | float | None) else "…"
    *before, source = _up_to_source(call)
    is_format = re.match("(write|open|read)_", call.__name__) and re.search("file_formats|plugins", call.__module__)
    path = "path" if source == "datasets" else source
    read = f"tfr.dataset({path}, {name}={shown})"
    first = ", ".join([*before, f"[{read}, …]" if source == "datasets" else read])
    return f"to dataset(): tfr.{'formats.' * bool(is_format)}{_name(call)}({first}, …)"


def _close_in_dataset(name: str, close: list[str], call: Callable[..., Any] | None) -> list[str]:
    """The keyword of a dataset that a misspelled one is like, if the call has none that is."""
    import difflib

    if close or call is None or name in OF_DATASETS:
        return []
    return difflib.get_close_matches(name.lower(), of_dataset(call), n=1, cutoff=0.7)


def _name(call: Callable[..., Any]) -> str:
    """The name of a public call; of a class, its constructor has that."""
    return next((part for part in reversed(call.__qualname__.split(".")) if not part.startswith("_")), call.__name__)


def too_many_arguments(call: Callable[..., Any], names: Sequence[str], given: Sequence[object]) -> TypeError:
    """The error for more arguments by position than a call takes: the others are keywords, or files of one list.

    >>> def merge(source, target, *, shards=None): ...
    >>> str(too_many_arguments(merge, ["source", "target"], ["a", "b", "c"]))
    'merge() takes 2 arguments by position (source, target), not 3: pass several files as one list, [a, b]'
    """
    bound = len(_OWNERS.intersection(names))
    names, given = names[bound:], given[bound:]
    keywords = [p for p in inspect.signature(call).parameters.values() if p.kind is p.KEYWORD_ONLY]
    required = [p for p in keywords if p.default is p.empty]
    if names[:1] == ["source"] and not required and all(isinstance(value, str | PathLike) for value in given):
        advice = ": pass several files as one list, [a, b]"
    elif keywords:
        example = "".join(f", such as {p.name}=" for p in required[:1])
        valid = ", ".join(sorted(p.name for p in keywords))
        advice = f": pass others by keyword{example}; valid names: {valid}"
    else:
        advice = ""
    listed = f" ({', '.join(names)})" if names else ""
    takes = f"{counted(len(names), 'argument')} by position{listed}"
    return TypeError(f"{_name(call)}() takes {takes}, not {len(given)}{advice}")


def unknown_attribute(owner: object, name: str, instead: str | None = None) -> AttributeError:
    """The error for an attribute that a dataset or a reader does not have, with what does the same."""

    def text() -> str:
        import difflib

        what = type(owner).__name__
        hint = instead or _OF_OTHERS.get(what, _METHODS).get(name)
        close = difflib.get_close_matches(name, dir(owner), n=1, cutoff=0.8)
        meant = f": {hint}" if hint else f"; did you mean {close[0]!r}?" if close and name[:1] != "_" else ""
        return f"{what!r} object has no attribute {name!r}{meant}"

    return AttributeError(LateText(text), name=name, obj=owner)


_OWNERS = {"self", "cls", "dataset"}  # the first parameter of a method, and of a function that is one of datasets


def unknown_keyword(
    name: str, known: Collection[str], call: Callable[..., Any] | None, value: object = None, instead: str | None = None
) -> TypeError:
    """The error for a keyword that `call` does not have, with the one meant if name and value make that clear.

    What to pass `instead` is the argument of another call, or an option.
    """
    import difflib

    parameters = () if call is None else [*inspect.signature(call).parameters.values()]
    valid = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.default is not p.empty}
    valid = set(known) if call is None else valid
    of_all_rows = call is not None and _name(call) in _OF_ALL_ROWS
    limit = f"tfr.Limits({_OF_LIMITS.get(name, name)}={value!r})"
    if not (name in _ELSEWHERE and of_all_rows):
        instead = f"in {instead}" if instead else _for_dataset(name, value, call)
    if instead is not None:
        return TypeError(f"{_name(call) if call else ''}() has no {name}=; pass it {instead}")
    public = [] if call is None else [part for part in call.__qualname__.split(".") if not part.startswith("_")]
    where = f"{'.'.join(public)}() got an " if public else ""
    meant = meant_keywords(name)
    close = difflib.get_close_matches(name.lower(), valid, n=1, cutoff=0.7)
    elsewhere = [_ELSEWHERE[own] for own in [name, *meant] if own in _ELSEWHERE and of_all_rows]
    if "mode" in valid and (mode := _meant_mode(name, value, call)) is not None:
        hint = mode
    elif names := [own for own in (*meant, _OF_LIMITS.get(name)) if own in valid]:
        hint = f": did you mean {names[0]}={limit if names[0] == 'limits' else ''}?"
        if names[0] == "worker" and name in _OF_A_LOADER:
            hint = f": {_OF_A_LOADER[name]}"
    elif elsewhere:
        hint = f": {elsewhere[0]};"
    elif moved := [own for own in (meant or _close_in_dataset(name, close, call)) if _for_dataset(own, value, call)]:
        advice = (_for_dataset(moved[0], ..., call) or "").replace("…", limit, 1) if moved[0] == "limits" else None
        advice = advice or _for_dataset(moved[0], value, call)
        return TypeError(f"{where}unexpected keyword argument {name!r}: pass {moved[0]}= {advice}")
    elif before := next((_BEFORE[own] for own in [name, *meant] if _is_method(call) and own in _BEFORE), None):
        hint = f": call dataset.{before} before;"
    elif instead := _instead(call, name):
        hint = f": {instead};"
    elif _is_method(call) and (own := next((own for own in [name, *meant] if own in OF_DATASETS), None)):
        hint = f": pass it to tfr.dataset(path, {own}=…);"
    elif name in _OF_SOURCES and any(p.name == "source" for p in parameters):
        hint = ": did you mean source, the first argument?"
    else:
        hint = f": did you mean {close[0]}=?" if close else ";"
    named = valid or {p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD} - _OWNERS
    listed = f" valid names: {', '.join(sorted(named))}" if named else " it takes none"
    return TypeError(f"{where}unexpected keyword argument {name!r}{hint}{listed}")


def _is_method(call: Callable[..., Any] | None) -> bool:
    """Whether a call is a method of datasets, some of which adapters have as functions of a scan."""
    return call is not None and (call.__qualname__.startswith("Dataset.") or call.__name__.startswith("to_"))
