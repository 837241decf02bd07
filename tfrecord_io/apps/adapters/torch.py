"""PyTorch: an IterableDataset that ranks and workers share, and a map-style Dataset of rows by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrecord_io.kit import LateTypes, ModelInputs, RepresentationOptions, Rows, check_integer, needs
from tfrecord_io.typing import ArrayLayout, CacheFolder, Lengths, Missing, OpenedDataset, UnevenParts

if TYPE_CHECKING:
    import torch
else:
    torch = LateTypes("torch")


def to_torch(
    dataset: OpenedDataset | Rows,
    *,
    batch_size: int | None = None,
    shuffle_buffer: int | None = None,
    seed: int | None = None,
    drop_last: bool = False,
    rank: tuple[int, int] | None = None,
    workers: int | None = None,
    uneven: UnevenParts = "keep",
    parts: int | tuple[int, int] | None = None,
    channels_first: bool = False,
    targets: Sequence[str] | str | None = None,
    ragged: ArrayLayout | Mapping[str, ArrayLayout] | None = None,
    pad_value: Any = 0,
    max_length: Lengths | Mapping[str, Lengths] | None = None,
    pad_to: Lengths | Mapping[str, Lengths] | None = None,
    missing: Missing = "error",
    bucket_by: Sequence[str] | str | None = None,
    bucket_sizes: Sequence[int] | None = None,
    pack: Mapping[str, int] | None = None,
    cut: bool = False,
    end_token: Any = None,
    cu_seqlens: bool = False,
    state: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
) -> torch.utils.data.IterableDataset[dict[str, Any]]:
    """A PyTorch IterableDataset, whose rows the ranks and the workers of a DataLoader share.

    Parameters
    ----------
    batch_size : int, optional
        Rows of a batch; pass ``batch_size=None`` to the DataLoader then. By default, single rows, for a DataLoader that
        makes the batches: many times slower.
    rank : tuple of int, optional
        The index of this process, and the number of processes; by default those that ``torch.distributed`` has when an
        iteration begins, or (0, 1) if it is not initialized then (a ValueError if WORLD_SIZE in the environment is more
        than 1), or if accelerate distributes among the processes what the stream yields.
    workers : int, optional
        The ``num_workers`` of the DataLoader, on which ``len()`` depends where workers have files of their own: each
        ends with a batch that may not be full. ``len()`` of a DataLoader takes its own; one with another number than
        `workers` is an error. One that makes batches of single rows itself counts them as those of one worker, and
        trainers that end an epoch there omit some rows: pass `batch_size`.
    shuffle_buffer, seed, drop_last, uneven, bucket_by, bucket_sizes, pack, cut, end_token, cu_seqlens
        As in `iter_arrays`.
    parts : int or (int, int), optional
        As in `iter_arrays`. A number is that of the lanes; there are as many turns as workers. In an order that ranks
        and workers share, a state is one of all, and any number of them goes on with it.
    state : dict or list of dict, optional
        The ``state_dict()`` of an iterator, or of a StatefulDataLoader with any number of workers, of any rank, or a
        list of those of several: the epoch in which it was saved goes on with the step after it.
    channels_first : bool, default False
        Images are (channels, height, width) as models of PyTorch take them: without a copy, in the memory format
        ``torch.channels_last``.
    targets : str or sequence of str, optional
        Batches are pairs of inputs and targets: dicts of the other columns, and of these; or the value alone where a
        dict would have one.
    ragged, pad_value, max_length, pad_to, missing
        As in `read_arrays`.

    Returns
    -------
    torch.utils.data.IterableDataset
        Of dicts by column. Numbers, bools, times and tensors are torch tensors that share the memory of the decoded
        arrays; times and durations are int64, counts of the unit in the schema. Lists of a fixed length are tensors:
        the schema states it, or all lists of the sample have one. Text, bytes, decimals and other
        lists are lists of str, bytes, Decimal and tensors, with None for a missing value. With ``missing="mask"`` there
        is a bool tensor ``<column>/mask`` for each tensor column, True where a value is missing. Each iteration is one
        epoch, in an order of its own; ``set_epoch(n)`` says which the next one is. Its iterators have ``state_dict``
        and ``load_state_dict``, which torchdata's StatefulDataLoader uses. ``len()`` is the number of batches, or rows,
        of an epoch of this rank; TypeError if it is not known, which says why.

    Raises
    ------
    MissingDependencyError
        torch is not installed.
    TypeError, ValueError
        A keyword does not exist, or its value is invalid.
    """
    RepresentationOptions.refuse_matrices(ragged, "torch")
    with needs("torch"):
        from tfrecord_io.apps.adapters.torch_datasets import TFRecordStream
    workers = check_integer("workers", workers, 0, optional=True)
    if batch_size is None and bucket_by is not None:
        raise ValueError("bucket_by= makes batches of similar length: pass batch_size=, that of the last bucket")
    if batch_size is None and cu_seqlens:
        raise ValueError("cu_seqlens=True counts the tokens of a batch: pass batch_size=")
    iteration = Rows.of(dataset).iterate(
        batch_size=1 if batch_size is None else batch_size,
        worker=rank,
        shuffle_buffer=shuffle_buffer,
        seed=seed,
        drop_last=drop_last,
        uneven=uneven,
        parts=parts,
        ragged=ragged,
        pad_value=pad_value,
        max_length=max_length,
        pad_to=pad_to,
        missing=missing,
        bucket_by=bucket_by,
        bucket_sizes=bucket_sizes,
        pack=pack,
        cut=cut,
        end_token=end_token,
        cu_seqlens=cu_seqlens,
    )
    form = ModelInputs.from_schema(iteration.schema, channels_first, targets)
    return TFRecordStream(iteration, batch_size is None, workers, form=form, state=state)


def to_torch_map(
    dataset: OpenedDataset | Rows,
    *,
    batch_size: int | None = None,
    seed: int | None = None,
    drop_last: bool = False,
    channels_first: bool = False,
    targets: Sequence[str] | str | None = None,
    pad_value: Any = 0,
    max_length: Lengths | Mapping[str, Lengths] | None = None,
    pad_to: Lengths | Mapping[str, Lengths] | None = None,
    missing: Missing = "error",
    bucket_by: Sequence[str] | str | None = None,
    bucket_sizes: Sequence[int] | None = None,
    pack: Mapping[str, int] | None = None,
    cut: bool = False,
    end_token: Any = None,
    cu_seqlens: bool = False,
    cache: CacheFolder | None = None,
) -> torch.utils.data.Dataset[dict[str, Any]]:
    """A map-style PyTorch Dataset: rows by number, for samplers. Files must not be compressed.

    An index (``write_index=True`` or ``tfr index``) saves scanning the files. It can be pickled, and several processes
    may use it.

    Parameters
    ----------
    batch_size : int, optional
        The items are batches of so many rows, then: with `bucket_by` of the longest lists, with `pack` of packed rows.
    seed : int, optional
        With `batch_size`: of the order of the rows that make batches, another one after ``set_epoch(n)``; by default
        that of the files, and without ``set_epoch``.
    drop_last, bucket_by, bucket_sizes, pack, cut, end_token, cu_seqlens
        As in `iter_arrays`, with `batch_size`.
    channels_first, targets
        As in `to_torch`.
    cache : path, or (path, int), optional
        A local directory, where decoded rows of one size are kept for the next epoch, run or process: at most so many
        bytes, by default half of the space that is free. Files that have changed are decoded again.
    pad_value, max_length, pad_to, missing
        As in `read_arrays`.

    Returns
    -------
    torch.utils.data.Dataset
        Of dicts by column, whose values are those of a row of `to_torch`. ``rows[3]`` is one; ``rows[3:6]`` and
        ``rows[[5, 3]]`` are lists of several; ``rows.arrays([5, 3])`` is a batch as those of `iter_arrays`. A
        DataLoader gets the rows of a batch by one call, which reads the records that are near each other together, and
        yields the batch as it was read; with workers, ``collate_fn=rows.collate_fn`` sends it in less time. With
        `batch_size` its items are batches like those of `to_torch`, which a sampler shuffles: pass
        ``batch_size=None`` to the DataLoader.

    Raises
    ------
    MissingDependencyError
        torch is not installed.
    ValueError
        A file is compressed, the dataset has an `on_error`, or a keyword is not possible without another.
    """
    with needs("torch"):
        from tfrecord_io.apps.adapters.torch_datasets import TFRecordBatches, TFRecordRows
    rows = Rows.of(dataset).by_number(
        batch_size=batch_size,
        seed=seed,
        drop_last=drop_last,
        pad_value=pad_value,
        max_length=max_length,
        pad_to=pad_to,
        missing=missing,
        bucket_by=bucket_by,
        bucket_sizes=bucket_sizes,
        pack=pack,
        cut=cut,
        end_token=end_token,
        cu_seqlens=cu_seqlens,
        cache=cache,
    )
    form = ModelInputs.from_schema(rows.schema, channels_first, targets)
    return (TFRecordRows if batch_size is None or seed is None else TFRecordBatches)(rows, form)
