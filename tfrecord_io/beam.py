"""Transforms for Apache Beam: ``ReadTable``, ``ReadAllTables`` and ``WriteTable``; the extra ``beam`` installs it.

``from tfrecord_io.beam import ReadTable``; ``help(ReadTable)`` describes its parameters.
"""

from tfrecord_io.base.public_names import attach as _attach

__getattr__, __dir__, __all__ = _attach("beam", globals())
