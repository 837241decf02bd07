"""The logger of the package: what a call did that its result does not say.

INFO is what has changed in storage: files written, appended, replaced, compacted, removed, copied. DEBUG is why a read
or write took the way that it took: requests made again, indexes, manifests, the engine. Warnings are not logged. There
is at most one message for a file, request or call, and none for a record.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("tfrecord_io")
logger.addHandler(logging.NullHandler())
