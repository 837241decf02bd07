"""The logger of the package.

INFO is what has changed in storage: files written, appended, replaced, compacted, removed, copied. DEBUG is why a read
or write took the way that it took: requests made again, indexes, manifests, the engine. Warnings are not logged. There
is at most one message for a file, request or call, and none for a record.

Tests: tests/base/messages/test_display.py.
"""

from __future__ import annotations

import logging
from numbers import Number

from tfrecord_io.base.messages.display import printable

logger = logging.getLogger(__name__.partition(".")[0])


def _escape_arguments(record: logging.LogRecord) -> bool:
    """Hide the secrets of URLs in the arguments of a log message, and escape them; a filter of the logger.

    Paths may have control characters and bytes that are not UTF-8, also in the text of an error.
    """
    if isinstance(record.args, tuple):
        record.args = tuple(value if isinstance(value, Number) else printable(value, None) for value in record.args)
    return True


logger.addFilter(_escape_arguments)
logger.addHandler(logging.NullHandler())
