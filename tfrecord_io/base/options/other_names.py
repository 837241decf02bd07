"""Did you mean: names of other libraries and what to use here, and the errors for names that do not exist.

Tests: tests/test_likely_mistakes.py and tests/base/options/test_options.py.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Sequence
from functools import partial
from os import PathLike
from typing import Any

from tfrecord_io.base.messages.display import LateText, counted
from tfrecord_io.base.options.calls_on_datasets import is_method, kept_by_dataset, names_up_to_source
from tfrecord_io.base.options.selection import OF_DATASETS

NO_APPEND = "nothing is appended to a file: write another one next to it, and read both by their directory or a glob"
_ALL_ROWS = ("read_tfrecord", "read_table", "read_arrays", "infer_schema", "open_random")
_FILE_WRITERS = "RecordWriter merge split shuffle sample dedupe salvage copy write_npy write_npz".split()
_TRAINING = "batch_size shuffle_buffer seed epochs drop_last worker uneven parts state ragged missing bucket_by".split()
_TRAINING += ["bucket_sizes", "pack", "cut", "end_token"]


def _keywords_of(call: str) -> str:
    """The keywords of training, as keywords that a call does not have."""
    return " ".join(f"{call}({name}=)" for name in _TRAINING)


# Names of other libraries, as they are written: ``keyword=``, ``call(keyword=)``, ``Class.attribute``, ``tfr.name``;
# and what to use here: keywords, of which the first that a call has is meant, or advice. Keys are several names each.
_ROWS: dict[str, str] = {
    "batch= batchsize= chunksize= chunk_size= batch_rows= row_group_size=": "batch_size=",
    "group_by_length= length_column=": "bucket_by=",
    "verify= verify_crc= check_integrity= verify_checksum=": "check_crc=",
    "usecols= features= fields= names= feature_names= select=": "columns=",
    "compression_type= codec=": "compression=",
    "compresslevel= level=": "compression_level=",
    "backend=": "dtype_backend=",
    "drop_remainder=": "drop_last=",
    "sep=": "delimiter=",
    "num_epochs= repeat= n_epochs= infinite=": "epochs=",
    "merge_schema= mergeschema= schema_mode= schema_evolution=": "evolve=",
    "fs=": "filesystem=|storage_options=",
    "filter= where= query= condition=": "filters=",
    "predicate=": "filters=|overwrite_where=",
    "frac=": "fraction=",
    "test_size= train_size=": "fractions=",
    "path_column= file_column=": "include_file_paths=",
    "filename=": "include_file_paths=|source, the first argument",
    "preserve_index=": "index=",
    "key_column= key_feature_name= on=": "key=",
    "size= window= window_size=": "length=",
    "nrows= n_rows= lines= num_rows= max_rows= head= take= n= count=": "limit=",
    "max_record_bytes=": "record_bytes=|limits=tfr.Limits(record_bytes=…)",
    "max_features=": "features=|limits=tfr.Limits(features=…)",
    "max_expansion=": "expansion_bytes=|limits=tfr.Limits(expansion_bytes=…)",
    "max_decompression_ratio=": "decompression_ratio=|limits=tfr.Limits(decompression_ratio=…)",
    "max_len= max_seq_length= truncate= truncation=": "max_length=",
    "max_shard_size= max_file_size= shard_size=": "max_shard_bytes=",
    "fill_value= na_value=": "missing=",
    "skiprows= skip_rows= skip= start=": "offset=",
    "errors= ignore_errors= on_bad_lines=": "on_error=",
    "channels=": "mode=",
    "overwrite= exist_ok=": "mode='overwrite' or 'error'",
    "no_overwrite= no_clobber=": "mode='error'",
    "if_exists= exists=": "mode='error', 'overwrite' or 'append'",
    "existing_data_behavior=": "mode='overwrite_partitions' or 'error'",
    "partition_overwrite_mode= partitionoverwritemode=": "mode='overwrite_partitions'",
    "replace_where= replacewhere=": "overwrite_where=",
    "pad_to_multiple_of=": "pad_to=",
    "padding_value= padding_values=": "pad_value=",
    "verbose= progress_bar=": "progress=",
    "pad= padding=": "ragged=",
    "example_type=": "record_type=",
    "feature_description= description= features_description= types= parse_dates=": "schema=",
    "dtype= dtypes= column_types= astype=": "schema_overrides=",
    "random_state=": "seed=",
    "num_shards=": "shards=|worker=",
    "n_shards= num_files= partitions= npartitions=": "shards=",
    "shuffle= buffer_size= shuffle_buffer_size= shuffle_size= shuffle_queue_size=": "shuffle_buffer=",
    "checkpoint= resume= state_dict=": "state=",
    "stopping_strategy= stop_on_empty_dataset=": "stop=",
    "delete= sync=": "update=",
    "checksum=": "verify=",
    "probabilities= probs=": "weights=",
    "num_workers= workers=": "worker=|threads=",
    "rank= world_size= shard= shard_index= num_processes=": "worker=",
    "n_jobs= num_threads= n_threads= use_threads= num_parallel_reads= num_parallel_calls=": "threads=",
    "filesystem=": "storage_options=",
    "append=": "mode='append'",
    "file= filenames= filepath= filepath_or_buffer= files= input= path= paths= src=": "source, the first argument",
    "Dataset.sample Dataset.random_sample": "tfr.sample(path, target, n=…) writes random records",
    "Dataset.shuffle Dataset.batch Dataset.repeat": (
        "iter_arrays(batch_size=…, shuffle_buffer=…, epochs=…), to_torch and to_tf do this; tfr.shuffle writes files"
    ),
    "Dataset.map Dataset.apply Dataset.map_batches Dataset.with_columns Dataset.assign Dataset.transform": (
        "change the arrays in a loop over iter_arrays(batch_size=…), or call to_tf() or to_hf(), which have map"
    ),
    "Dataset.cache Dataset.prefetch Dataset.persist Dataset.interleave": (
        "iter_arrays reads ahead by itself; keep the rows in memory by to_arrays() or to_table()"
    ),
    "Dataset.as_dataset Dataset.to_tensorflow": ("call to_tf(batch_size=…), whose result model.fit takes"),
    "Dataset.dataloader Dataset.to_dataloader Dataset.to_pytorch": (
        "torch.utils.data.DataLoader(ds.to_torch(…)) takes it"
    ),
    "Dataset.as_numpy_iterator Dataset.as_numpy Dataset.iter_batches Dataset.iter_rows Dataset.iterrows "
    "Dataset.padded_batch": "call iter_arrays(batch_size=…)",
    "Dataset.to_numpy Dataset.to_dict Dataset.to_jax": "call to_arrays(), or iter_arrays(batch_size=…) for batches",
    "Dataset.to_arrow Dataset.to_pyarrow": "call to_table(), or to_batches() for batches",
    "Dataset.to_df Dataset.to_dataframe": "call to_pandas()",
    "Dataset.shard": "iter_arrays(batch_size=…, worker=(i, n)) reads the i-th of n shares",
    "Dataset.train_test_split Dataset.random_split": "tfr.split(ds, target, fractions=…) writes the parts",
    "Dataset.tail": "tfr.open_random(path)[-n:] has the last rows",
    "Dataset.num_rows Dataset.shape Dataset.height Dataset.count Dataset.cardinality": "call count_rows()",
    "Dataset.column_names Dataset.dtypes Dataset.names Dataset.element_spec": (
        "schema has the names and types, columns the names"
    ),
    "Dataset.where Dataset.query": "call filter()",
    "Dataset.drop Dataset.drop_columns Dataset.remove_columns": "call select(['*', '!name'])",
    "Dataset.collect": "call to_table(), to_pandas() or to_polars()",
    "Dataset.write Dataset.save Dataset.to_tfrecord Dataset.sink": "tfr.write_tfrecord(ds, path) writes the rows",
    "Dataset.to_csv Dataset.to_parquet Dataset.to_json Dataset.write_parquet": (
        "tfr.convert(path, target) writes other formats"
    ),
    "Dataset.skip": "tfr.dataset(path, offset=n) leaves out the first rows",
    "Dataset.concat Dataset.concatenate Dataset.union": "a + b joins two datasets",
    "Reader.to_pandas Reader.to_df Reader.df Reader.collect": "call read_pandas()",
    "Reader.read Reader.to_table Reader.to_arrow Reader.read_table Reader.fetchall": "call read_all()",
    "Reader.to_polars": "call polars.from_arrow(reader)",
    "Reader.columns Reader.column_names Reader.names Reader.dtypes": "it is schema.names",
    "Reader.num_rows Reader.count_rows Reader.shape": "the number of rows is not known; tfr.count(path)",
    "Reader.iter_arrays Reader.to_numpy Reader.to_arrays Reader.map Reader.batch Reader.shuffle": (
        "tfr.dataset(path) has it"
    ),
    "RecordReader.read RecordReader.readline": "call next(reader), or loop over it",
    "RecordReader.read_all RecordReader.readlines RecordReader.as_numpy_iterator": "list(reader) has all records",
    "RecordReader.take RecordReader.head": "pass tfr.dataset(path, limit=n)",
    "RecordReader.skip": "pass tfr.dataset(path, offset=n)",
    "RecordReader.map RecordReader.batch RecordReader.shuffle RecordReader.repeat": (
        "tfr.iter_arrays(path, batch_size=…) parses, shuffles and batches Examples"
    ),
    "ArrayIterator.state_dict ArrayIterator.get_state ArrayIterator.save": "call state()",
    "ArrayIterator.load_state_dict ArrayIterator.set_state ArrayIterator.load_state": (
        "call restore(state), or pass state= to a new iterator"
    ),
    "ArrayIterator.reset": "an iterator makes one pass; epochs=n makes n, and a new one begins again",
    "tfr.TFRecordReader tfr.read_records tfr.tf_record_iterator tfr.tfrecord_iterator": "RecordReader",
    "tfr.write_records": "RecordWriter",
    "tfr.index": "build_index",
    "tfr.optimize": "compact",
    "tfr.from_csv tfr.from_parquet tfr.read_csv tfr.read_json tfr.read_parquet tfr.to_csv tfr.to_json "
    "tfr.to_parquet tfr.write_csv tfr.write_parquet": "convert",
    "tfr.cp tfr.download tfr.move tfr.mv tfr.rsync tfr.sync tfr.upload": "copy",
    "tfr.count_records": "count",
    "tfr.TFRecordDataset tfr.data tfr.head tfr.load_dataset tfr.read_daft tfr.read_dask tfr.read_ray tfr.scan": (
        "dataset"
    ),
    "tfr.drop tfr.forget tfr.remove tfr.rm": "delete",
    "tfr.info": "describe",
    "tfr.decode_image tfr.decode_jpeg tfr.decode_png": "image",
    "tfr.iter_batches tfr.tfrecord_loader": "iter_arrays",
    "tfr.concat tfr.concatenate": "merge",
    "tfr.interleave tfr.interleave_datasets tfr.sample_from_datasets": "mix",
    "tfr.get tfr.lookup tfr.tail": "open_random",
    "tfr.arrays": "read_arrays",
    "tfr.get_schema tfr.metadata tfr.read_schema tfr.schema": "read_metadata",
    "tfr.load tfr.open tfr.read tfr.read_dataframe tfr.read_pandas tfr.to_pandas": "read_tfrecord",
    "tfr.repair": "salvage",
    "tfr.bytes_ tfr.text": "scalar",
    "tfr.read_polars": "scan_polars",
    "tfr.train_test_split": "split",
    "tfr.check tfr.validate": "verify",
    "tfr.from_pandas tfr.save tfr.to_tfrecord tfr.write tfr.write_daft tfr.write_dask tfr.write_pandas "
    "tfr.write_ray tfr.write_table": "write_tfrecord",
    "tfr.from_files": "formats.embed_files",
    "tfr.from_coco tfr.read_coco": "formats.open_coco",
    "tfr.from_elwc tfr.read_elwc": "formats.open_elwc",
    "tfr.from_file_folder tfr.read_file_folder": "formats.open_file_folder",
    "tfr.from_idx tfr.read_idx": "formats.open_idx",
    "tfr.from_image_folder tfr.read_image_folder": "formats.open_image_folder",
    "tfr.from_npy tfr.read_npy": "formats.open_npy",
    "tfr.from_npz tfr.read_npz": "formats.open_npz",
    "tfr.from_pascal_voc tfr.read_voc": "formats.open_voc",
    "tfr.from_yolo tfr.read_yolo": "formats.open_yolo",
    "tfr.to_elwc": "formats.write_elwc",
    "tfr.to_file_folder": "formats.write_file_folder",
    "tfr.to_image_folder": "formats.write_image_folder",
    "tfr.to_npy": "formats.write_npy",
    "tfr.to_npz": "formats.write_npz",
    "tfr.TFRecordOptions": "io.TFRecordOptions",
    "tfr.TFRecordWriter": "io.TFRecordWriter",
    "iter_arrays(num_workers=) iter_arrays(workers=) to_tf(num_workers=) to_tf(workers=)": (
        "did you mean worker=? It is (i, n), for the i-th of n processes; to_torch is for a DataLoader(num_workers=n)"
    ),
    " ".join(f"{call}({n}=)" for call in _ALL_ROWS for n in ("batch_size", "batch_bytes")): (
        "tfr.open_reader reads in batches"
    ),
    " ".join(f"{call}(filters=)" for call in _ALL_ROWS): (
        "tfr.dataset(path).filter(…) reads the rows that meet a condition"
    ),
    "open_writer(record_dim=) open_writer(overwrite_where=)": (
        "write_tfrecord has it, and takes an iterable of tables, too"
    ),
    " ".join(f"{call}({n}=)" for call in _FILE_WRITERS for n in ("append", "if_exists", "exists")): (
        f"mode='error' or 'overwrite' is for a file that exists; {NO_APPEND}"
    ),
    "Dataset(columns=)": "call dataset.select(…) before",
    "Dataset(filters=)": "call dataset.filter(…) before",
    "Dataset(limit=)": "call dataset.limit(…) before",
    "Dataset(offset=)": "call dataset.offset(…) before",
    _keywords_of("to_torch"): "each iteration is an epoch of one process, and has state_dict()",
    _keywords_of("to_torch_map"): (
        "a sampler and a DataLoader shuffle, share and batch rows by number; to_torch streams them"
    ),
    "iter_arrays(cache=) to_torch(cache=) to_tf(cache=)": "to_torch_map, to_grain and to_keras keep rows by number",
    "to_tf(cu_seqlens=) to_hf(cu_seqlens=)": "iter_arrays and to_torch have it, for their attention kernels",
    _keywords_of("to_tf"): (
        "each iteration is an epoch, and repeat(n) of the dataset has several; iter_arrays(state=…) resumes"
    ),
    _keywords_of("to_grain"): (
        "the datasets of Grain shuffle, repeat, share, batch and resume; iter_arrays makes padded batches"
    ),
    _keywords_of("to_hf"): (
        "its streams shuffle, batch, share and resume by themselves; to_torch, to_tf and iter_arrays do this"
    ),
}


class OtherNames(dict[str, str]):
    """Names of other libraries, and what to use here."""

    def meant_keywords(self, name: str) -> list[str]:
        """The keywords that have this name in other libraries.

        >>> OTHER_NAMES.meant_keywords("nrows"), OTHER_NAMES.meant_keywords("num_workers")
        (['limit'], ['worker', 'threads'])
        """
        return [keyword for keyword, _ in _meanings(name)]

    def attribute_error(self, owner: object, name: str, instead: str | None = None) -> AttributeError:
        """The error for an attribute that a dataset or a reader does not have, with what does the same."""
        return AttributeError(LateText(partial(_attribute_text, owner, name, instead)), name=name, obj=owner)


OTHER_NAMES = OtherNames((name, text) for names, text in _ROWS.items() for name in names.split())
_OWNERS = {"self", "cls", "dataset"}  # the first parameter of a method, and of a function that is one of datasets


def _name(call: Callable[..., Any]) -> str:
    """The name of a public call; that of the class for a constructor."""
    return next((part for part in reversed(call.__qualname__.split(".")) if not part.startswith("_")), call.__name__)


def _meanings(name: str) -> list[tuple[str, str]]:
    """The keywords that a keyword of another library means, each with how it is written."""
    texts = OTHER_NAMES.get(f"{name.lower()}=", "").split("|")
    return [(keyword[0], text) for text in texts if (keyword := re.match(r"\w+", text))]


def unknown_keyword(
    name: str, known: Collection[str], call: Callable[..., Any] | None = None, instead: str | None = None
) -> TypeError:
    """The error for a keyword unknown to `call`, with a hint: the meant keyword, or where to pass it `instead`."""
    parameters = [] if call is None else [*inspect.signature(call).parameters.values()]
    valid = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.default is not p.empty}
    valid = set(known) if call is None else valid
    hint = f"pass {instead}" if instead else _keyword_hint(name, valid, call)
    where = [] if call is None else [part for part in call.__qualname__.split(".") if not part.startswith("_")]
    start = f"{'.'.join(where)}() got an " if where else ""
    names = valid or {p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD} - _OWNERS
    listed = f" valid names: {', '.join(sorted(names))}" if names else " it takes none"
    if hint.startswith("pass "):  # somewhere else, where other names are valid
        end = f": {hint}"
    else:
        end = f": {hint}{'' if hint.endswith('?') else ';'}{listed}" if hint else f";{listed}"
    return TypeError(f"{start}unexpected keyword argument {name!r}{end}")


def _keyword_hint(name: str, valid: Collection[str], call: Callable[..., Any] | None) -> str:
    """A hint about an unknown keyword; empty if nothing is similar."""
    from difflib import get_close_matches

    meanings = _meanings(name)
    calls = [] if call is None else [_name(call), *(["Dataset"] if is_method(call) else [])]
    notes = [OTHER_NAMES.get(f"{c}({n}=)", "") for n in [name, *(n for n, _ in meanings)] for c in calls]
    passed = set() if call is None else kept_by_dataset(call)
    usable = {*valid, *({"source"} if call is not None and "source" in inspect.signature(call).parameters else ())}
    close = get_close_matches(name.lower(), valid, 1, 0.7)
    if call is not None and not (close or meanings or name in OF_DATASETS or is_method(call)):
        close = get_close_matches(name.lower(), sorted(passed), 1, 0.7)
    for text in [*notes[: len(calls)], *(f"did you mean {text}?" for n, text in meanings if n in usable), *notes]:
        if text:
            return text
    for keyword, text in [(name, f"{name}="), *meanings, *((keyword, f"{keyword}=") for keyword in close)]:
        if keyword in valid:
            return f"did you mean {text}?"
        if call is not None and keyword in passed:
            return _pass_to_dataset(keyword, text if text[-1] != "=" else f"{text}…", call)
    return ""


def _pass_to_dataset(keyword: str, text: str, call: Callable[..., Any]) -> str:
    """How a keyword of reading is passed to a call that takes a dataset, or to the dataset of a method."""
    if is_method(call):
        return f"pass it to tfr.dataset(path, {text})"
    *before, source = names_up_to_source(call)
    read = f"tfr.dataset({source}, {text})" if source != "datasets" else f"[tfr.dataset(path, {text}), …]"
    is_format = re.match("(write|open|read)_", call.__name__) and re.search("file_formats|plugins", call.__module__)
    module = "tfr.formats" if is_format else "tfr"
    return f"pass {keyword}= to dataset(): {module}.{_name(call)}({', '.join([*before, read])}, …)"


def too_many_arguments(call: Callable[..., Any], names: Sequence[str], values: Sequence[object]) -> TypeError:
    """The error for more arguments by position than a call takes: the others are keywords, or files of one list.

    >>> def merge(source, target, *, shards=None): ...
    >>> str(too_many_arguments(merge, ["source", "target"], ["a", "b", "c"]))
    'merge() takes 2 arguments by position (source, target), not 3: pass several files as one list, [a, b]'
    """
    bound = len(_OWNERS.intersection(names))
    names, values = names[bound:], values[bound:]
    keywords = [p for p in inspect.signature(call).parameters.values() if p.kind is p.KEYWORD_ONLY]
    required = [p for p in keywords if p.default is p.empty]
    if names[:1] == ["source"] and not required and all(isinstance(value, str | PathLike) for value in values):
        advice = ": pass several files as one list, [a, b]"
    elif keywords:
        example = "".join(f", such as {p.name}=" for p in required[:1])
        valid = ", ".join(sorted(p.name for p in keywords))
        advice = f": pass others by keyword{example}; valid names: {valid}"
    else:
        advice = ""
    listed = f" ({', '.join(names)})" if names else ""
    takes = f"{counted(len(names), 'argument')} by position{listed}"
    return TypeError(f"{_name(call)}() takes {takes}, not {len(values)}{advice}")


def _attribute_text(owner: object, name: str, instead: str | None) -> str:
    from difflib import get_close_matches

    what = type(owner).__name__
    table = what if what in ("Reader", "RecordReader", "ArrayIterator") else "Dataset"
    hint = instead or OTHER_NAMES.get(f"{table}.{name}")
    close = get_close_matches(name, dir(owner), n=1, cutoff=0.8)
    meant = f": {hint}" if hint else f"; did you mean {close[0]!r}?" if close and name[:1] != "_" else ""
    return f"{what!r} object has no attribute {name!r}{meant}"
