"""An output as a file object, for libraries that write to one."""

from __future__ import annotations

import io
from typing import Any

from tfrecord_io.storage.write.output_file import OutputFile


class OutputStream(io.RawIOBase):
    """Writes on to an `OutputFile`; closing it publishes nothing, as that is the output's own business."""

    def __init__(self, output: OutputFile) -> None:
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        return self._output.write(data)

    def tell(self) -> int:
        return self._output.offset
