"""The messages of ``tf.train`` that records consist of: ``tfr.train.`` instead of ``tf.train.``.

>>> import tfrecord_io as tfr
>>> values = tfr.train.Int64List(value=[3])
>>> example = tfr.train.Example(features=tfr.train.Features(feature={"x": tfr.train.Feature(int64_list=values)}))
>>> tfr.decode_example(example.SerializeToString())
{'x': array([3])}
"""

from tfrecord_io.base.public_names import attach as _attach

__getattr__, __dir__, __all__ = _attach("train", globals())
