"""The keywords of calls that read files of other formats.

Tests: tests/apps/file_formats/test_embed_files.py and tests/plugins/vision/test_from_folder.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from tfrecord_io.base.options.on_damage import OnDamage, of_files
from tfrecord_io.base.options.options_base import Options, check_choice
from tfrecord_io.typing import InvalidBoxes, OnFileError


@dataclass(frozen=True, kw_only=True)
class FileOptions(Options):
    """Keywords of calls that read many files."""

    threads: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_integer("threads", 1, optional=True)


@dataclass(frozen=True, kw_only=True)
class FolderOptions(FileOptions):
    """Keywords of calls that make a row of each file of a folder."""

    shuffle_seed: int | None = None
    on_error: OnFileError = "raise"

    @property
    def damage(self) -> OnDamage:
        """The treatment of damaged files."""
        return OnDamage.of(self.on_error)

    def __post_init__(self) -> None:
        super().__post_init__()
        OnDamage.checked(self.on_error, of_files, advice="")
        self._check_integer("shuffle_seed", 0, optional=True)


@dataclass(frozen=True, kw_only=True)
class AnnotationOptions(FolderOptions):
    """Keywords of `tfrecord_io.formats.open_coco` and `tfrecord_io.formats.open_voc`."""

    invalid_boxes: InvalidBoxes = "skip"
    check_sizes: bool = True
    orient: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("invalid_boxes", self.invalid_boxes, get_args(InvalidBoxes))
        check_choice("check_sizes", self.check_sizes, (False, True))
        check_choice("orient", self.orient, (None, False, True))
