"""The encoding "raw": bytes in C order, little-endian."""

from typing import Any, ClassVar

import numpy as np
import pytest

import tfrecord_io as tfr
from tfrecord_io.testing import BytesEncodingSuite


@pytest.mark.usefixtures("engine")
class TestRaw(BytesEncodingSuite):
    name = "raw"
    hostile: ClassVar = [b"", b"junk!", bytes(11), bytes(13)]

    def elsewhere(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"x": array.tobytes()}

    def test_companions_may_be_missing_but_not_contradict(self, tmp_path: Any) -> None:
        array = np.arange(6, dtype="i4")
        schema = self.declared("int32", (2, 3))
        good = {"x": array.tobytes(), "x/shape": [2, 3], "x/dtype": b"int32"}
        path = self.foreign(tmp_path / "a", [array, good])
        np.testing.assert_array_equal(tfr.read_arrays(path, schema=schema)["x"], [array.reshape(2, 3)] * 2)
        for other in ({"x/shape": [3, 2]}, {"x/dtype": b"uint32"}):
            path = self.foreign(tmp_path / "b", [good, {**good, **other}])
            with pytest.raises(tfr.errors.DecodeError, match=r"record 1.*feature 'x'"):
                tfr.read_arrays(path, schema=schema)
