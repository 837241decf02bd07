"""The metadata of image columns, and their round trips."""

from __future__ import annotations

from typing import Any

import pytest

import tfrecord_io as tfr
from tfrecord_io.columns.schema.field_makers import image, list_, sequence
from tfrecord_io.columns.schema.image_form import image_form, is_image
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.errors import SchemaError


@pytest.mark.parametrize(
    ("made", "source"),
    [
        (image(), "tfr.image()"),
        (image((None, None, 3)), "tfr.image((None, None, 3))"),
        (image((28, 28, 1)), "tfr.image((28, 28, 1))"),
        (image(mode="L"), 'tfr.image(mode="L")'),
        (image(resize=(2, 3), feature="y"), 'tfr.image(resize=(2, 3), feature="y")'),
        (image(resize=(2, 3), fit="crop", draft=True), 'tfr.image(resize=(2, 3), fit="crop", draft=True)'),
        (image(orient=False), "tfr.image(orient=False)"),
        (list_(image((2, 3, 1)), 4), "tfr.list_(tfr.image((2, 3, 1)), 4)"),
        (list_(image(mode="L"), feature="y"), 'tfr.list_(tfr.image(mode="L"), feature="y")'),
        (sequence(image((None, None, 3)), required=True), "tfr.sequence(tfr.image((None, None, 3)), required=True)"),
    ],
)
def test_image_metadata_round_trip(made: Any, source: str) -> None:
    schema = Schema({"x": made})
    assert f'"x": {source}' in schema.to_python()
    for again in (Schema.from_json(schema.to_json()), Schema.from_arrow(schema.to_arrow())):
        assert is_image(again["x"])
        assert again["x"].metadata == schema["x"].metadata
        assert image_form(again["x"]) == image_form(schema["x"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "BGR"}, "mode='BGR': expected one of 'RGB', 'L',"),
        ({"shape": (28, 28)}, "height, width, channels"),
        ({"shape": (28, 28, 1), "mode": "RGB"}, "has 3 channels, the shape has 1"),
        ({"resize": 3}, r"expected \(height, width\)"),
        ({"resize": (0, 3)}, "sides from 1"),
        ({"resize": (2**20, 3)}, "sides from 1"),
        ({"shape": (-5, 2, 3)}, "-5"),
        ({"resize": (2, 3), "fit": "cover"}, "'stretch', 'contain', 'crop', 'pad'"),
        ({"fit": "crop"}, "fit='crop' is for images that are resized.*pass resize="),
        ({"draft": True}, "draft=True is for images that are resized"),
        ({"orient": "yes"}, "orient='yes': expected True or False"),
    ],
)
def test_contradictory_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        image(**arguments)


def test_images_that_are_decoded_in_other_ways_are_not_equal() -> None:
    fields = [tfr.scalar("binary"), tfr.image(), tfr.image(mode="L"), tfr.image(resize=(8, 8)), tfr.image(mode="index")]
    assert [fields.index(field) for field in fields] == list(range(len(fields)))
    assert tfr.image(mode="L") == tfr.image(mode="L")
