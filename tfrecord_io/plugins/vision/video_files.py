"""Videos of the frames of episodes, written and read by PyAV: MP4 files as LeRobot has them.

Tests: tests/plugins/vision/test_lerobot_videos.py.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from tfrecord_io.errors import DecodeError, EncodeError
from tfrecord_io.kit import Array, needs, printable

if TYPE_CHECKING:
    import av

CODEC, CODEC_NAME, PIXEL_FORMAT = "libsvtav1", "av1", "yuv420p"  # LeRobot's defaults
_OPTIONS = {"g": "2", "crf": "30", "svtav1-params": "rc=0"}  # a key frame every two frames, so that seeking is fast
_WHAT = "videos of episodes"


class VideoWriter:
    """An MP4 file of frames [height, width, 3] of uint8, at `fps` frames per second."""

    def __init__(self, path: str, fps: int, height: int, width: int) -> None:
        with needs("video", _WHAT):
            import av
        if height % 2 or width % 2:
            reason = f"a video has an even height and width, and the frames are {height}×{width}"
            raise EncodeError(reason, hint="resize them", expected="even sizes", got=(height, width))
        os.environ.setdefault("SVT_LOG", "1")  # errors alone: else the codec describes itself on stderr
        self.frames = self.bytes = 0  # bytes of what is encoded so far
        self._container = av.open(path, "w", format="mp4")
        stream = self._container.add_stream(CODEC, rate=Fraction(fps), options=_OPTIONS)
        self._stream = cast("av.VideoStream", stream)
        self._stream.height, self._stream.width, self._stream.pix_fmt = height, width, PIXEL_FORMAT

    def write(self, pixels: Array) -> None:
        """Append a frame."""
        import av

        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        for packet in self._stream.encode(frame):
            self.bytes += packet.size
            self._container.mux(packet)
        self.frames += 1

    def close(self) -> None:
        """Complete the file."""
        for packet in self._stream.encode():
            self._container.mux(packet)
        self._container.close()

    def discard(self) -> None:
        """Close a file that is not complete."""
        with suppress(Exception):  # the folder is removed
            self._container.close()


class VideoReader(AbstractContextManager["VideoReader"]):
    """The frames of a video at given times, which must not decrease but for a `seek`."""

    def __init__(self, file: Any, path: str) -> None:
        with needs("video", _WHAT):
            import av
        self._path = path
        with self._errors():
            self._container = av.open(file, metadata_errors="ignore")
            streams = self._container.streams.video
        if not streams:
            self._container.close()
            raise DecodeError("it has no video", path=path, expected="a video stream")
        self._stream: Any = streams[0]
        self._stream.thread_type = "AUTO"
        self._frames: Iterator[Any] = self._container.decode(self._stream)
        self._frame: Any = None  # the last one that was decoded

    def __exit__(self, *_: object) -> None:
        self._container.close()

    def _errors(self) -> _Errors:
        return _Errors(self._path)

    def seek(self, time: float) -> None:
        """Go to the last key frame before a time."""
        with self._errors():
            self._container.seek(max(0, int(time / self._stream.time_base)), stream=self._stream)
            self._frames, self._frame = self._container.decode(self._stream), None

    def frame(self, time: float, tolerance: float) -> Array:
        """The pixels [height, width, 3] of the frame whose time is closest to this one, uint8.

        DecodeError if that is further away than the tolerance, in seconds.
        """
        with self._errors():
            while self._frame is None or self._frame.time < time - tolerance:
                following = next(self._frames, None)
                if following is None:
                    break
                self._frame = following
        if self._frame is None or abs(self._frame.time - time) > tolerance:
            got = "it ends before" if self._frame is None else f"the closest one is at {self._frame.time:.4f} s"
            reason = f"it has no frame at {time:.4f} s: {got}"
            raise DecodeError(reason, path=self._path, expected=time, got=getattr(self._frame, "time", None))
        with self._errors():
            pixels: Array = self._frame.to_ndarray(format="rgb24")
        return pixels


class _Errors(AbstractContextManager["_Errors"]):
    """Raises the errors of PyAV for damaged videos as DecodeError."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __exit__(self, kind: Any, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        from av.error import FFmpegError

        is_of_file = isinstance(error, OSError) and error.errno == errno.EINVAL  # a seek to where a damaged file leads
        if isinstance(error, FFmpegError) or is_of_file:
            reason = f"damaged, or not a video that can be decoded: {printable(str(error), 200)}"
            raise DecodeError(reason, path=self._path, expected="a video") from error
