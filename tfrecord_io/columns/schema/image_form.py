"""Form of the decoded images of a column, as the metadata of its field states."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from tfrecord_io.columns.schema.column_features import as_shape
from tfrecord_io.columns.schema.field import CONVERSION_ERRORS, IMAGE_KEY, RAW_IMAGE_KEY, SHAPE_KEY, Field
from tfrecord_io.columns.schema.tensor_types import Shape
from tfrecord_io.errors import SchemaError

INDEX = "index"  # the numbers of a palette's colours
MODE_OF = {3: "RGB", 1: "L", 4: "RGBA"}
CHANNELS = {**{mode: channels for channels, mode in MODE_OF.items()}, INDEX: 1}
_UNCHANGED = "unchanged"
_STRETCH, CONTAIN, CROP, PAD = _FITS = ("stretch", "contain", "crop", "pad")
_BILINEAR, NEAREST = _RESAMPLES = ("bilinear", "nearest")
_MAX_SIDE = 2**16  # pixels
HWC, CHW = LAYOUTS = ("HWC", "CHW")  # orders of the axes of raw pixels
RAW_DTYPES = ("uint8", "uint16")


@dataclass(frozen=True, slots=True)
class ImageForm:
    """The arguments of `tfrecord_io.image` about pixels; SchemaError if one is unknown, or two contradict each other.

    >>> ImageForm((None, None, 1)).mode
    'L'
    """

    KEY: ClassVar[bytes] = IMAGE_KEY  # of the metadata of a field
    INDEX_MODE: ClassVar[str] = INDEX
    MODES_BY_CHANNELS: ClassVar[Mapping[int, str]] = MODE_OF
    CHANNELS_BY_MODE: ClassVar[Mapping[str, int]] = CHANNELS

    shape: Shape | None = None  # (height, width, channels) required of each image
    mode: str = None  # type: ignore[assignment]  # always one of the modes after __post_init__
    resize: tuple[int, int] | None = None  # to (height, width)
    fit: str = _STRETCH
    orient: bool = True
    draft: bool = False
    resample: str = None  # type: ignore[assignment]  # always one of _RESAMPLES after __post_init__

    def __post_init__(self) -> None:
        shape = None if self.shape is None else as_shape(self.shape)
        if shape is not None and len(shape) != 3:
            reason = f"an image has the shape (height, width, channels), not {shape}"
            advice = f"resize={shape!r} resizes images to a height and a width" if len(shape) == 2 else None
            raise SchemaError(reason, expected=3, got=len(shape), hint=advice)
        channels = None if shape is None else shape[2]
        mode = self.mode or _default_mode(shape)
        _check("mode", mode, (*CHANNELS, _UNCHANGED))
        if channels not in (None, CHANNELS.get(mode, channels)):
            reason = f"the mode {mode!r} has {CHANNELS[mode]} channels, the shape has {channels}"
            raise SchemaError(reason, expected=CHANNELS[mode])
        resize = None if self.resize is None else _size(self.resize)
        _check("fit", self.fit, _FITS)
        for name in ("orient", "draft"):
            if not isinstance(value := getattr(self, name), bool):
                reason = f"{name}={value!r}: expected True or False"
                raise SchemaError(reason, expected="bool", got=value)
        resample = self._resample(mode)
        resize_options = {
            "fit": self.fit != _STRETCH,
            "draft": self.draft,
            "resample": resample != _default_resample(mode),
        }
        if resize is None and any(resize_options.values()):
            name = next(f"{name}={getattr(self, name)!r}" for name, is_given in resize_options.items() if is_given)
            raise SchemaError(f"{name} is for images that are resized", hint="pass resize=(height, width)")
        for name, value in (("shape", shape), ("mode", mode), ("resize", resize), ("resample", resample)):
            object.__setattr__(self, name, value)

    def _resample(self, mode: str) -> str:
        default = _default_resample(mode)
        resample = default if self.resample is None else self.resample
        _check("resample", resample, _RESAMPLES)
        if resample != NEAREST and mode == INDEX:
            reason = f"resample={resample!r} would mix the numbers of classes"
            raise SchemaError(reason, expected=NEAREST, got=resample, hint='pass resample="nearest"')
        if resample == NEAREST and self.draft:
            reason = 'draft=True averages pixels, which resample="nearest" is not to do'
            raise SchemaError(reason, hint="pass one of the two")
        return resample

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes] | None, column: str) -> Self | None:
        """Read the form from the metadata of a column.

        None if it is not a column of images, SchemaError if the metadata is damaged.
        """
        if not metadata or IMAGE_KEY not in metadata:
            return None
        try:
            note = json.loads(metadata[IMAGE_KEY])
            shape = json.loads(metadata.get(SHAPE_KEY, b"null"))
            attributes = {f.name: note[f.name] for f in fields(cls) if f.name in note}
            if not isinstance(note["mode"], str):
                raise SchemaError("an image has a mode")
            return cls(**({} if shape is None else {"shape": shape}) | attributes)
        except (*CONVERSION_ERRORS, SchemaError) as error:
            raise SchemaError("its metadata is damaged: tfrecord_io.image", feature=column) from error

    @property
    def channels(self) -> int:
        """Number of channels of each array; 0 if arrays differ in it."""
        return CHANNELS.get(self.mode, 0)

    @property
    def size(self) -> tuple[int, ...] | None:
        """The shape of every array, if it is known in advance."""
        channels = self.channels
        if not channels or (self.resize is not None and self.fit == CONTAIN):
            return None
        if self.resize is not None:
            return (*self.resize, channels)
        return None if self.shape is None or None in self.shape else self.shape  # type: ignore[return-value]

    def keywords(self) -> dict[str, Any]:
        """The arguments of `tfrecord_io.image` besides the shape that are not the default."""
        default = {f.name: f.default for f in fields(self)} | {"mode": _default_mode(self.shape)}
        default["resample"] = _default_resample(self.mode)
        values = {name: getattr(self, name) for name in default if name != "shape"}
        return {name: value for name, value in values.items() if value != default[name]}

    def metadata(self, *, in_list: bool = False) -> dict[bytes, bytes]:
        """Metadata of the field; for lists of images with the shape, as the field's own shape is the list's."""
        note = {"mode": self.mode, **self.keywords()}
        if in_list and self.shape is not None:
            note["shape"] = self.shape
        return {IMAGE_KEY: json.dumps(note).encode()}

    def resize_image(self, image: Any, size: tuple[int, int]) -> Any:
        """An image of Pillow resized as the form says; `size` is that of the image before a draft of it was made."""
        import PIL.Image
        from PIL import ImageOps

        assert self.resize is not None
        kinds, fit, (height, width) = PIL.Image.Resampling, self.fit, self.resize
        resample = kinds.NEAREST if self.resample == NEAREST else kinds.BILINEAR
        if fit == CROP:
            return ImageOps.fit(image, (width, height), resample)
        if fit not in (CONTAIN, PAD):
            return image.resize((width, height), resample)
        own_width, own_height = size
        if own_width * height > own_height * width:
            inner = width, max(1, round(own_height / own_width * width))
        else:
            inner = max(1, round(own_width / own_height * height)), height
        image = image.resize(inner, resample)
        if fit == CONTAIN or inner == (width, height):
            return image
        padded = PIL.Image.new(image.mode, (width, height), 0)
        padded.paste(image, (round((width - inner[0]) / 2), round((height - inner[1]) / 2)))
        return padded


@dataclass(frozen=True, slots=True)
class RawImageForm:
    """The arguments of `tfrecord_io.image` about raw pixels, whose column is one of tensors.

    >>> RawImageForm("CHW").stored_axes((24, 32, 3))
    (3, 24, 32)
    """

    KEY: ClassVar[bytes] = RAW_IMAGE_KEY  # of the metadata of a field

    layout: str = HWC  # of the stored pixels, and of arrays
    resize: tuple[int, int] | None = None
    fit: str = _STRETCH
    resample: str = _BILINEAR

    def __post_init__(self) -> None:
        _check("layout", self.layout, LAYOUTS)
        form = ImageForm(mode=_UNCHANGED, resize=self.resize, fit=self.fit, resample=self.resample)
        object.__setattr__(self, "resize", form.resize)

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes] | None, column: str) -> Self | None:
        """Read the form from the metadata of a column; None without one, SchemaError if it is damaged."""
        if not metadata or RAW_IMAGE_KEY not in metadata:
            return None
        try:
            return cls(**json.loads(metadata[RAW_IMAGE_KEY]))
        except (*CONVERSION_ERRORS, SchemaError) as error:
            raise SchemaError("its metadata is damaged: tfrecord_io.raw_image", feature=column) from error

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The entry of a field's metadata."""
        return {RAW_IMAGE_KEY: json.dumps({"layout": self.layout, **self.keywords()}).encode()}

    def keywords(self) -> dict[str, Any]:
        """The arguments of `tfrecord_io.image` that are not the default."""
        values = {f.name: (getattr(self, f.name), f.default) for f in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @property
    def has_channels_first(self) -> bool:
        """True for the layout "CHW"."""
        return self.layout == CHW

    def stored_axes(self, shape: Sequence[Any]) -> tuple[Any, ...]:
        """(height, width, channels) in the order of the layout."""
        height, width, channels = shape
        return (channels, height, width) if self.layout == CHW else (height, width, channels)

    def image_axes(self, shape: Sequence[Any]) -> tuple[Any, ...]:
        """A shape in the order of the layout as (height, width, channels)."""
        return (*shape[1:], shape[0]) if self.layout == CHW else tuple(shape)

    def check(self, dtype: str, shape: Shape, column: str) -> None:
        """Raise SchemaError if tensors of this dtype and shape, in the order of the layout, are not images."""
        if dtype not in RAW_DTYPES:
            reason = f"raw pixels are {' or '.join(RAW_DTYPES)}, not {dtype}"
            advice = f"declare tfr.tensor({dtype!r}, …), whose values are not pixels"
            raise SchemaError(reason, feature=column or None, expected=RAW_DTYPES, got=dtype, hint=advice)
        if len(shape) != 3:
            reason = f"raw pixels have a height, a width and channels, and the shape {tuple(shape)} is stated"
            raise SchemaError(
                reason,
                feature=column or None,
                expected=3,
                got=len(shape),
                hint="state three, as in ('height', 'width', 1)",
            )
        channels = self.image_axes(shape)[2]
        if channels not in (None, *MODE_OF):
            reason = f"{channels} channels in the layout {self.layout}: an image has 1, 3 or 4"
            raise SchemaError(reason, feature=column or None, expected=(1, 3, 4), got=channels, hint=ORDER)


ORDER = 'layout= is the order of the axes: "CHW" where the channels are the first, "HWC" where they are the last'


def is_image(field: Field) -> bool:
    """True if `tfrecord_io.image` made the field, or its items, for encoded images."""
    return IMAGE_KEY in field.metadata


def image_form(field: Field) -> ImageForm | None:
    """Form of the decoded images of a field; None if it has none, SchemaError if the metadata is damaged."""
    shape = {} if field.shape is None else {SHAPE_KEY: json.dumps(field.shape).encode()}
    return ImageForm.from_metadata({**shape, **field.metadata}, field.column)


def _check(name: str, value: object, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        reason = f"{name}={value!r}: expected one of {', '.join(map(repr, choices))}"
        raise SchemaError(reason, expected=choices, got=value)


def _default_mode(shape: Shape | None) -> str:
    channels = None if shape is None else shape[2]
    return MODE_OF.get(channels or CHANNELS["RGB"], _UNCHANGED)


def _default_resample(mode: str) -> str:
    return NEAREST if mode == INDEX else _BILINEAR


def _size(resize: tuple[int, int]) -> tuple[int, int]:
    try:
        height, width = (int(side) for side in resize)
    except (TypeError, ValueError, OverflowError):
        reason = f"resize={resize!r}: expected (height, width)"
        raise SchemaError(reason, expected="(height, width)", got=resize) from None
    if not (0 < height <= _MAX_SIDE and 0 < width <= _MAX_SIDE):
        reason = f"resize={resize!r}: expected sides from 1 to {_MAX_SIDE}"
        raise SchemaError(reason, expected=f"1 to {_MAX_SIDE}", got=resize)
    return height, width
