"""Keras: a PyDataset of batches by number, for any backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrecord_io.kit import BatchesByNumber, LateTypes, ModelInputs, Rows, needs
from tfrecord_io.typing import CacheFolder, Lengths, Missing, OpenedDataset

if TYPE_CHECKING:
    import keras
else:
    keras = LateTypes("keras")


def to_keras(
    dataset: OpenedDataset | Rows,
    *,
    batch_size: int,
    targets: Sequence[str] | str | None = None,
    seed: int | None = None,
    drop_last: bool = False,
    channels_first: bool = False,
    pad_value: Any = 0,
    max_length: Lengths | Mapping[str, Lengths] | None = None,
    pad_to: Lengths | Mapping[str, Lengths] | None = None,
    missing: Missing = "error",
    bucket_by: Sequence[str] | str | None = None,
    bucket_sizes: Sequence[int] | None = None,
    pack: Mapping[str, int] | None = None,
    cut: bool = False,
    end_token: Any = None,
    cache: CacheFolder | None = None,
    workers: int = 1,
    use_multiprocessing: bool = False,
    max_queue_size: int = 10,
) -> keras.utils.PyDataset:
    """A ``keras.utils.PyDataset`` of batches, for ``model.fit`` with any backend. Files must not be compressed.

    An index (``write_index=True`` or ``tfr index``) saves scanning the files.

    Parameters
    ----------
    targets : str or sequence of str, optional
        Batches are pairs of inputs and targets: dicts of the other columns, and of these; or the array alone where a
        dict would have one.
    seed : int, optional
        Rows are put in a random order in each epoch, by this seed; by default they have that of the files.
    batch_size, drop_last, bucket_by, bucket_sizes, pack, cut, end_token
        As in `iter_arrays`.
    channels_first : bool, default False
        Images are (channels, height, width), as layers take them with ``data_format="channels_first"``.
    pad_value, max_length, pad_to, missing
        As in `read_arrays`; with ``missing="mask"`` there is a bool array ``<column>/mask``, True where a value is
        missing.
    cache : path, or (path, int), optional
        A local directory, where decoded rows of one size are kept for the next epoch, run or process: at most so many
        bytes, by default half of the space that is free. Files that have changed are decoded again.
    workers, use_multiprocessing, max_queue_size
        Of the PyDataset: threads, or processes, that make batches in advance, and how many.

    Returns
    -------
    keras.utils.PyDataset
        Of dicts of NumPy arrays, or of the array of the only column; text is arrays of objects, and times are int64,
        counts of the unit in the schema.

    Raises
    ------
    MissingDependencyError
        Keras is not installed.
    ValueError
        A file is compressed, the dataset has an `on_error`, or a keyword is not possible without another.
    """
    with needs("keras"):
        from tfrecord_io.apps.adapters.keras_batches import KerasBatches
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
        cache=cache,
    )
    assert isinstance(rows, BatchesByNumber)
    form = ModelInputs.from_schema(rows.schema, channels_first, targets)
    queue = {"workers": workers, "use_multiprocessing": use_multiprocessing, "max_queue_size": max_queue_size}
    return KerasBatches(rows, form, seed is not None, **queue)
