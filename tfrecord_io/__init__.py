"""TFRecord files to and from Arrow, pandas and NumPy, fast and without TensorFlow.

>>> import tfrecord_io as tfr
>>> _ = tfr.write_tfrecord({"label": [1, 0], "name": ["cat", "dog"]}, "pets.tfrecord")
>>> tfr.read_table("pets.tfrecord").column_names
['label', 'name']
"""

from tfrecord_io.base.public_names import attach as _attach
from tfrecord_io.errors import TFRecordError as TFRecordError

__version__ = "0.1.0"

# A module is imported when one of its names is first used; type checkers and editors read __init__.pyi.
__getattr__, __dir__, __all__ = _attach("", globals())
