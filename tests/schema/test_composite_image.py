"""The metadata of image columns, and their round trips."""

from __future__ import annotations

from typing import Any

import pytest

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.composite import image_keywords, is_image
from tfrecord_io.schema.field_makers import image
from tfrecord_io.schema.schema import Schema


@pytest.mark.parametrize(
    ("made", "source"),
    [
        (image(), "tfr.image()"),
        (image((None, None, 3)), "tfr.image((None, None, 3))"),
        (image((28, 28, 1)), "tfr.image((28, 28, 1))"),
        (image(mode="L"), 'tfr.image(mode="L")'),
        (image(resize=(2, 3), feature="y"), 'tfr.image(resize=(2, 3), feature="y")'),
    ],
)
def test_image_metadata_round_trip(made: Any, source: str) -> None:
    schema = Schema({"x": made})
    assert f'"x": {source}' in schema.to_python()
    for again in (Schema.from_json(schema.to_json()), Schema.from_arrow(schema.to_arrow())):
        assert is_image(again["x"])
        assert again["x"].metadata == schema["x"].metadata
        assert image_keywords(again["x"]) == image_keywords(schema["x"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "BGR"}, "unknown image mode 'BGR'"),
        ({"shape": (28, 28)}, "height, width, channels"),
        ({"shape": (28, 28, 1), "mode": "RGB"}, "has 3 channels, the shape has 1"),
        ({"resize": 3}, r"expected \(height, width\)"),
        ({"resize": (0, 3)}, "sides from 1"),
        ({"resize": (2**20, 3)}, "sides from 1"),
        ({"shape": (-5, 2, 3)}, "-5"),
    ],
)
def test_contradictory_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        image(**arguments)
