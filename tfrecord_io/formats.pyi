# Written by docs/reference/stub.py.

from tfrecord_io.apps.file_formats.array_files.from_numpy_files import open_idx as open_idx
from tfrecord_io.apps.file_formats.array_files.from_numpy_files import open_npy as open_npy
from tfrecord_io.apps.file_formats.array_files.from_numpy_files import open_npz as open_npz
from tfrecord_io.apps.file_formats.array_files.to_numpy_files import write_npy as write_npy
from tfrecord_io.apps.file_formats.array_files.to_numpy_files import write_npz as write_npz
from tfrecord_io.apps.file_formats.embed_files import embed_files as embed_files
from tfrecord_io.plugins.tensorflow.event_files import read_events as read_events
from tfrecord_io.plugins.tensorflow.from_elwc import open_elwc as open_elwc
from tfrecord_io.plugins.tensorflow.to_elwc import write_elwc as write_elwc
from tfrecord_io.plugins.tensorflow.write_tfds import write_tfds as write_tfds
from tfrecord_io.plugins.vision.coco import open_coco as open_coco
from tfrecord_io.plugins.vision.earth_engine import read_earth_engine as read_earth_engine
from tfrecord_io.plugins.vision.earth_engine import write_earth_engine as write_earth_engine
from tfrecord_io.plugins.vision.from_folder import open_file_folder as open_file_folder
from tfrecord_io.plugins.vision.from_folder import open_image_folder as open_image_folder
from tfrecord_io.plugins.vision.pascal_voc import open_voc as open_voc
from tfrecord_io.plugins.vision.to_folder import write_file_folder as write_file_folder
from tfrecord_io.plugins.vision.to_folder import write_image_folder as write_image_folder
from tfrecord_io.plugins.vision.yolo import open_yolo as open_yolo
from tfrecord_io.read.imploding import implode as implode

__all__ = [
    "embed_files",
    "implode",
    "open_coco",
    "open_elwc",
    "open_file_folder",
    "open_idx",
    "open_image_folder",
    "open_npy",
    "open_npz",
    "open_voc",
    "open_yolo",
    "read_earth_engine",
    "read_events",
    "write_earth_engine",
    "write_elwc",
    "write_file_folder",
    "write_image_folder",
    "write_npy",
    "write_npz",
    "write_tfds",
]
