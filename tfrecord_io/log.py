"""The logger of the package: what a call did that its result does not say.

INFO is what has changed in storage: files written, appended, replaced, compacted, removed, copied. DEBUG is why a read
or write took the way that it took: requests made again, indexes, manifests, the engine. Warnings are not logged. There
is at most one message for a file, request or call, and none for a record.
"""

from __future__ import annotations

import logging

from tfrecord_io.errors import hide_secrets


def _hide_secrets(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(
            hide_secrets(argument) if isinstance(argument, str) else argument for argument in record.args
        )
    return True


logger = logging.getLogger("tfrecord_io")
logger.addFilter(_hide_secrets)
logger.addHandler(logging.NullHandler())
