"""`pandas.read_tfrecord` and `DataFrame.to_tfrecord`, for those who ask for them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def register_pandas() -> None:
    """Add ``pandas.read_tfrecord`` and ``DataFrame.to_tfrecord``; doing it again changes nothing.

    Examples
    --------
    >>> register_pandas()
    >>> import pandas as pd
    >>> callable(pd.read_tfrecord)
    True
    """
    import pandas as pd

    tfr = importlib.import_module(
        "tfrecord_io"
    )  # whole by the time of the call; the floors below know nothing of its top

    def to_tfrecord(self: pd.DataFrame, path: Any, **options: Any) -> Any:
        return tfr.write_tfrecord(self, path, **options)

    to_tfrecord.__doc__ = tfr.write_tfrecord.__doc__
    pd.read_tfrecord = tfr.read_tfrecord
    pd.DataFrame.to_tfrecord = to_tfrecord
