"""`pandas.read_tfrecord` and `DataFrame.to_tfrecord`, added on request.

Tests: tests/columns/arrow/output/test_to_pandas.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfrecord_io.kit import check_keywords

if TYPE_CHECKING:
    import pandas as pd


@check_keywords
def register_pandas() -> None:
    """Add ``pandas.read_tfrecord`` and ``DataFrame.to_tfrecord``; calling it again has no effect.

    Examples
    --------
    >>> register_pandas()
    >>> import pandas as pd
    >>> callable(pd.read_tfrecord)
    True
    """
    import pandas as pd

    import tfrecord_io as tfr

    def to_tfrecord(self: pd.DataFrame, path: Any, **options: Any) -> Any:
        return tfr.write_tfrecord(self, path, **options)

    to_tfrecord.__doc__ = tfr.write_tfrecord.__doc__
    to_tfrecord.__qualname__ = "DataFrame.to_tfrecord"  # in errors about its arguments
    pd.read_tfrecord = tfr.read_tfrecord
    pd.DataFrame.to_tfrecord = to_tfrecord
