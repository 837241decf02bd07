"""Readers and writers of other formats: NumPy files, images in folders, COCO, TFDS, event files and others.

``open_…`` gives a stream of Arrow data that `tfrecord_io.write_tfrecord` writes, ``read_…`` gives all of it,
``write_…`` writes files. `tfrecord_io.convert` does the same from file to file, for all formats.

>>> import numpy as np, tfrecord_io as tfr
>>> np.save("x.npy", np.arange(6).reshape(3, 2))
>>> tfr.write_tfrecord(tfr.formats.open_npy("x.npy"), "x.tfrecord").records
3
"""

from tfrecord_io.base.public_names import attach as _attach

__getattr__, __dir__, __all__ = _attach("formats", globals())
