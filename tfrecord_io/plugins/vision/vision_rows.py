"""Formats that this plugin adds: images and files in folders and archives, with their keywords, and Earth Engine.

Tests: tests/plugins/vision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tfrecord_io.kit import Adapter, Format, Options, format_option
from tfrecord_io.typing import InvalidBoxes, Masks, Path


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class VisionOptions(Options):
    """Keywords of `tfrecord_io.convert` for these formats, with the help texts of ``tfr convert --help``."""

    class_names: Sequence[str] | None = format_option(
        "The classes of a folder of images, of Pascal VOC or YOLO, in the order of their labels.", "NAME,NAME..."
    )
    shuffle_seed: int | None = format_option("Read the images in a random order, with this seed.", "N")
    fps: int | None = format_option("Frames per second of the episodes, for LeRobot.", "N")
    task: str | None = format_option(
        "The column with the tasks, for LeRobot; by default, language_instruction.", "NAME"
    )
    use_videos: bool = format_option("Write the images of LeRobot's episodes as frames of videos.", default=False)
    video_frames: str = format_option(
        "What frames of LeRobot's videos become: png (the default), or jpeg, which is smaller.",
        "png|jpeg",
        default="png",
    )
    images: Path | None = format_option(
        "The folder of the images of COCO, Pascal VOC or YOLO annotations; as a target, none: annotations alone.",
        "DIRECTORY|none",
    )
    image_set: str | None = format_option("The image set of Pascal VOC or YOLO, such as train or val.", "NAME")
    invalid_boxes: InvalidBoxes | None = format_option(
        "What to do with boxes without area or beyond their image; by default, they are left out."
    )
    check_sizes: bool | None = format_option(
        "Whether an image whose size is not the annotated one is an error; by default, it is."
    )
    orient: bool | None = format_option(
        "Whether boxes refer to images rotated by EXIF, or to stored pixels; by default, the annotated size decides."
    )
    masks: Masks | None = format_option(
        "Read COCO masks or YOLO polygons, as JSON text or PNG images; by default, they are left out."
    )
    filename: str | None = format_option("The column with the names of the files that --files writes.", "COLUMN")


# What `reads` and `writes` of several rows have in common: keywords of `tfrecord_io.convert`.
_FILES = frozenset({"filters", "shuffle_seed", "threads"})
_IMAGES = _FILES | {"on_error"}
_ANNOTATED = _IMAGES | {"images", "invalid_boxes", "check_sizes", "orient"}
_ANNOTATIONS = frozenset({"class_names", "images", "check_sizes"})
_CODE = "tfrecord_io.plugins.vision."

# Each row begins with its name, title and help, by their positions: see `Format`.
TAR = Format(
    *("tar", "WebDataset", "WebDataset archives: members that share a name form a sample"),
    suffixes=(".tar",),
    plan=f"{_CODE}webdataset:Archives",
    content=f"{_CODE}tar_of_records:tar_source",
    holds_records=f"{_CODE}tar_of_records:is_tar_of_records",
    writer=f"{_CODE}webdataset:TarWriter",
    instead="name it after a suffix, such as jpg or cls",
    reads=Format.ORDERED,
    compressed=True,
    looks=("a tar archive",),
    **Format.hints("tar", where="if it is a WebDataset archive, "),
    magic=(b"ustar",),
    magic_at=257,
)
COCO = Format(
    *("coco", "COCO", "images with the boxes of a COCO annotation file: `tfrecord_io.formats.open_coco`"),
    open=f"{_CODE}coco:open_coco",
    write=f"{_CODE}to_annotated:to_coco",
    reads=_ANNOTATED | {"masks"},
    writes=_ANNOTATIONS,
    needs={"images": "the folder that its file names are relative to"},
    options=VisionOptions,
    extra="image",
)
VOC = Format(
    *("voc", "Pascal VOC", "a Pascal VOC folder of images with boxes: `tfrecord_io.formats.open_voc`"),
    folders=("Annotations", "JPEGImages"),
    open=f"{_CODE}pascal_voc:open_voc",
    write=f"{_CODE}to_annotated:to_pascal_voc",
    reads=_ANNOTATED | {"image_set", "class_names"},
    writes=_ANNOTATIONS | {"image_set"},
    options=VisionOptions,
    extra="image",
)
YOLO = Format(
    *("yolo", "YOLO", "a YOLO folder of images with boxes, polygons or key points: `tfrecord_io.formats.open_yolo`"),
    folders=("images", "labels"),
    open=f"{_CODE}yolo:open_yolo",
    write=f"{_CODE}to_annotated:to_yolo",
    reads=_ANNOTATED | {"image_set", "class_names", "masks"},
    writes=_ANNOTATIONS,
    options=VisionOptions,
    extra="yolo",
)
LEROBOT = Format(
    *("lerobot", "LeRobot", "a LeRobot folder: episodes become frames of it, with ``fps``; frames and videos are read"),
    open=f"{_CODE}lerobot_source:open_lerobot",
    projects=True,
    write=f"{_CODE}lerobot:convert_to_lerobot",
    reads=frozenset({"filters", "video_frames"}),
    writes=frozenset({"fps", "task", "use_videos"}),
    options=VisionOptions,
    extra="image",
)
IMAGES = Format(
    *("images", "a folder of images", "a folder of images: `tfrecord_io.formats.open_image_folder`"),
    open=f"{_CODE}from_folder:open_image_folder",
    write=f"{_CODE}to_folder:to_image_folder",
    reads=_IMAGES | {"class_names"},
    writes=frozenset({"filename"}),
    looks=("a PNG image", "a JPEG image", "a GIF image", "a WebP image", "a TIFF image"),
    advice="tfr.formats.open_image_folder reads a folder of images",
    advice_cli="tfr convert --from images reads a folder of images",
    options=VisionOptions,
    extra="image",
)
FILES = Format(
    *("files", "a folder of files", "a folder of files of any kind: `tfrecord_io.formats.open_file_folder`"),
    open=f"{_CODE}from_folder:open_file_folder",
    write=f"{_CODE}to_folder:to_file_folder",
    reads=_FILES | {"class_names"},
    writes=frozenset({"filename"}),
    options=VisionOptions,
    looks=("a WAV file", "a FLAC file", "an Ogg file"),
    advice="tfr.formats.open_file_folder reads a folder of files of any kind",
    advice_cli="tfr convert --from files reads a folder of files of any kind",
)

EARTH_ENGINE = Adapter("earth_engine", module=f"{_CODE}earth_engine")
