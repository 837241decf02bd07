"""Lower bounds, in processes like those of the contenders: what must be done with the bytes whoever reads or writes.

Reading: `Floor` copies the bytes and takes their CRC32C; `ReadBytes` reads them; `HeaderHop` finds the records;
`Kernel` is the decoder of tfrecord_io alone, with the file in memory. Writing: `WriteBytes` writes as many bytes from
a hot buffer and takes their CRC; `KernelEncode` is the encoder alone.
"""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np

from benchmarks.readers import library
from benchmarks.workloads import Workload
from benchmarks.writers import target

HOT_BYTES = 1 << 20


def crc_functions() -> dict[str, Any]:
    """Hardware implementations of CRC32C; the fastest counts."""
    import crc32c

    from tfrecord_io.bytes.engine.select import get_engine

    return {"crc32c": crc32c.crc32c, "kernel": get_engine().crc32c}


class _Bytes:
    """The file's bytes in memory."""

    share = 1.0
    settings: Any = ((),)

    def __init__(self, workload: Workload) -> None:
        library()
        self.rows = workload.rows
        self.path = workload.path
        self.data = np.fromfile(workload.path, np.uint8)

    @staticmethod
    def count(result: int) -> int:
        return result


class Floor(_Bytes):
    """memcpy into a new buffer, then CRC32C of all bytes."""

    name = "memcpy + CRC32C"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.crcs = crc_functions()
        self.settings = list(self.crcs)

    def run(self, setting: str) -> int:
        copy = np.empty_like(self.data)
        np.copyto(copy, self.data)
        self.crcs[setting](self.data)
        return self.rows


class ReadBytes(_Bytes):
    """read() of the whole file, in blocks into one buffer."""

    name = "read()"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.buffer = bytearray(4 << 20)

    def run(self, setting: tuple[()]) -> int:
        with open(self.path, "rb", buffering=0) as file:
            while file.readinto(self.buffer):
                pass
        return self.rows


class HeaderHop(_Bytes):
    """The kernel's scan: from header to header, with the CRC of each length."""

    name = "header hop"

    def run(self, setting: tuple[()]) -> int:
        from tfrecord_io.bytes.engine.select import get_engine

        frames, fault = get_engine().scan(self.data, check_crc=False)
        assert fault is None
        return len(frames.starts)


class Kernel(_Bytes):
    """The decoder with the file in memory: discovered columns, all CRCs checked."""

    name = "kernel"

    def run(self, setting: tuple[()]) -> int:
        return decode(self.data)


def decode(data: Any) -> int:
    """Decode records into columns; returns their number."""
    from tfrecord_io.bytes.engine.contract import Plan
    from tfrecord_io.bytes.engine.select import get_engine

    decoder = get_engine().decoder(Plan())
    decoder.expect(len(data))
    progress = decoder.feed(data)
    assert progress.fault is None
    columns = decoder.by_feature()
    assert columns
    return progress.records


class WriteBytes(_Bytes):
    """write() of as many bytes from a hot buffer, and the CRC32C of that many."""

    name = "write() + CRC32C"
    crc = True

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.total = len(self.data)
        self.buffer = self.data[:HOT_BYTES].copy()
        del self.data
        self.target = target(workload, self.name.split("(")[0])
        self.crc_of = crc_functions()["kernel"]

    def run(self, setting: tuple[()]) -> int:
        file = os.open(self.target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            for begin in range(0, self.total, HOT_BYTES):
                piece = self.buffer[: self.total - begin]
                if self.crc:
                    self.crc_of(piece)
                os.write(file, piece)
        finally:
            os.close(file)
        return self.rows

    def close(self) -> None:
        os.unlink(self.target)


class WriteBytesAlone(WriteBytes):
    """write() of as many bytes from a hot buffer."""

    name = "write()"
    crc = False


class KernelEncode(_Bytes):
    """The encoder with the columns in memory."""

    name = "kernel"

    def __init__(self, workload: Workload) -> None:
        from tfrecord_io.bytes.engine.contract import Plan
        from tfrecord_io.bytes.engine.select import get_engine

        super().__init__(workload)
        engine = get_engine()
        decoder = engine.decoder(Plan())
        decoder.feed(self.data)
        self.encoder, self.memory = engine.encoder(decoder.take()), engine.memory()
        del self.data

    def run(self, setting: tuple[()]) -> int:
        done, step = 0, 8192
        while done < self.rows:
            _, rows = self.encoder.encode(done, min(done + step, self.rows), memory=self.memory)
            done += rows
        return done


class ReadFiles:
    """open() and read() of every file of a folder."""

    name = "open() + read()"
    share = 1.0
    settings: Any = ((),)

    def __init__(self, workload: Workload, path: str, rows: int) -> None:
        self.rows = rows
        self.paths = sorted(entry.path for entry in os.scandir(path))

    def run(self, setting: tuple[()]) -> int:
        for path in self.paths:
            file = os.open(path, os.O_RDONLY)
            os.read(file, 1 << 16)
            os.close(file)
        return self.rows

    @staticmethod
    def count(result: int) -> int:
        return result


class Decompress(_Bytes):
    """Decompression alone, with ISA-L, in memory."""

    name = "decompression"

    def run(self, setting: tuple[()]) -> int:
        from isal import isal_zlib

        decompressor = isal_zlib.decompressobj(wbits=31)
        for begin in range(0, len(self.data), HOT_BYTES):
            decompressor.decompress(self.data[begin : begin + HOT_BYTES])
        return self.rows


class Compress(_Bytes):
    """Compression of the records alone, with zlib at TensorFlow's level, on one thread."""

    name = "compression"

    def run(self, setting: tuple[()]) -> int:
        compressor = zlib.compressobj(6, wbits=31)
        for begin in range(0, len(self.plain), HOT_BYTES):
            compressor.compress(self.plain[begin : begin + HOT_BYTES])
        compressor.flush()
        return self.rows

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.plain = zlib.decompress(self.data, wbits=31)


class PandasAllocates(_Bytes):
    """What pandas must allocate for the frame: a copy of its NumPy arrays, and pyarrow's conversion to objects."""

    name = "pandas allocates"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        tfr = library()
        frame = tfr.read_tfrecord(self.path)
        kinds = dict(zip(frame.columns, frame.dtypes, strict=True))
        self.arrays = [block.values for block in frame._mgr.blocks if block.dtype.kind in "iufb"]
        self.objects = tfr.read_table(self.path, columns=[n for n, d in kinds.items() if d.kind == "O"])
        self.masked = [frame[n].array for n, d in kinds.items() if d.kind in "iufb" and not isinstance(d, np.dtype)]
        del self.data

    def run(self, setting: tuple[()]) -> int:
        self.kept = [array.copy() for array in [*self.arrays, *self.masked]]
        self.made = [column.to_pandas() for column in self.objects.columns]
        return self.rows
