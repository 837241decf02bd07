"""The functions of ``tf.io`` for records, under TensorFlow's names: ``tfr.io.`` instead of ``tf.io.``.

>>> import tfrecord_io as tfr
>>> with tfr.io.TFRecordWriter("x.tfrecord") as writer:
...     writer.write(tfr.encode_example({"x": 3}))
>>> (record,) = tfr.RecordReader("x.tfrecord")
>>> tfr.io.parse_single_example(record, {"x": tfr.io.FixedLenFeature([], "int64")})
{'x': np.int64(3)}
"""

from tfrecord_io.base.public_names import attach as _attach

__getattr__, __dir__, __all__ = _attach("io", globals())
