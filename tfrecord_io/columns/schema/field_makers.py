"""Field makers: the functions with which a schema is written by hand.

Each returns a field without a name: its key in a Schema's dict names the column and, without ``feature=``, the feature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import check_keywords, printable
from tfrecord_io.bytes import Dtype, ShapeSource
from tfrecord_io.columns.schema.column_features import (
    BY_WIRE,
    CONTEXT,
    FEATURE_LIST,
    LIST,
    RAW,
    as_shape,
    fixed_part,
    size_of,
)
from tfrecord_io.columns.schema.field import Field, column_property
from tfrecord_io.columns.schema.tensor_types import (
    TENSOR_ENCODINGS,
    dtype_metadata,
    element_and_shape,
    encoding_rules,
    is_any_tensor,
    tensor_type,
)
from tfrecord_io.columns.schema.type_names import as_arrow_type, marked_tensor, type_from_name, type_name
from tfrecord_io.columns.schema.types import is_list_like
from tfrecord_io.errors import SchemaError
from tfrecord_io.typing import ImageFit, ImageLayout, ImageResample


@check_keywords
def scalar(
    type: Any,
    *,
    default: Any = None,
    required: bool | None = None,
    feature: str | None = None,
    encoding: str = LIST,
    part: str | None = None,
    empty: str | None = None,
) -> Field:
    """A column of single values.

    >>> import tfrecord_io as tfr
    >>> tfr.Schema(
    ...     {
    ...         "label": tfr.scalar("int32", default=0),
    ...         "price": tfr.scalar("float32", feature="PRICE"),
    ...     }
    ... )
    Schema of 2 columns
      label  int32  default 0
      price  float  feature PRICE

    Parameters
    ----------
    type : pa.DataType, str or dtype
        Arrow's, NumPy's or TensorFlow's, or a name: "int32", "bool", "timestamp[us]". Not a list.
    default : object, optional
        The value where the feature is absent; None: null.
    required : bool, optional
        True: a record without the feature is an error, unless there is a default. False: the feature may be missing,
        from all records too. If not given, it may be missing, with a `SchemaWarning` if no record has it.
    feature : str, optional
        Its name in the records, if it differs from the column's.
    encoding : {"list", "raw", "nested", "json"}
        "raw": each value is the bytes of a number. "nested" and "json", of structs and maps: several features, or a
        text, as ``column_encoding=`` of `write_tfrecord` writes them.
    part : {"context"}, optional
        Of a SequenceExample: single values are context features. If a feature list has the same name, declare that as
        a second column, made by `sequence` with ``feature=``.
    empty : {None, "null"}
        "null": a feature that has a type but no values, as Ray writes nulls, is treated as absent. None: it is an
        error, or an empty list in a column of lists.
    """
    type_ = as_arrow_type(type)
    if is_list_like(type_) or is_any_tensor(type_):
        reason = f"expected a type of single values, got {type_name(type_)}"
        raise SchemaError(reason, got=str(type_), hint="use list_() or tensor()")
    return _field(type_, feature, encoding=encoding, required=required, default=default, part=part, empty=empty)


@check_keywords
def list_(
    type: Any,
    length: int | None = None,
    *,
    default: Any = None,
    required: bool | None = None,
    feature: str | None = None,
    encoding: str = LIST,
    part: str | None = None,
    empty: str | None = None,
) -> Field:
    """A column of lists.

    >>> list_("float32", 3)
    Field(fixed_size_list<item: float>[3])
    >>> list_(image(resize=(64, 64)))
    Field(list<item: binary>, image RGB, resize (64, 64))
    >>> list_(tensor("uint8", ("height", "width")))
    Field(list<item: tensor<uint8>[?,?]>, encoding raw, list of arrays, shape from ('height', 'width'))

    Parameters
    ----------
    type : pa.DataType, str, dtype, mapping or Field
        Of one value; or a mapping, for structs; or what `image` returns, for lists of images: the frames of a video,
        several views. Or what `tensor` returns: each value of the feature is the bytes of an array. A feature that
        states a size has one for each array, or one for all; one that states all sizes, or the dtype, has those of all.
    length : int, optional
        The number of values in every record; another number is a DecodeError. The column is a fixed_size_list.
    default, required, feature, encoding, empty
        As in `scalar`; ``encoding="raw"``: a list is stored as the bytes of an array; "nested" and "json" are also for
        lists of lists.
    part : {"context", "feature_list"}, optional
        Of a SequenceExample: the context by default; "feature_list" is the same as `sequence` of single values.
    """
    from tfrecord_io.columns.schema.image_form import image_form

    form, source = None, None
    if isinstance(type, Mapping):
        type = _struct_type(type)
    if isinstance(type, Field):
        form, source = image_form(type), _list_source(type)
        if form is None and source is None:
            raise SchemaError("a list is made of a type, an image or a tensor", got=repr(type))
    value = type.type if isinstance(type, Field) else as_arrow_type(type)
    try:
        whole = pa.list_(value) if length is None else pa.list_(value, size_of(as_shape(length)))
    except (ValueError, TypeError) as error:
        raise SchemaError(f"{length!r} is not a number of values", expected="a number", got=length) from error
    if source is not None:
        if encoding != LIST or default is not None or part not in (None, CONTEXT):
            reason = "lists of arrays have no encoding=, default= and feature lists"
            raise SchemaError(reason, hint="make feature lists with sequence(), of which each has its own encoding")
        return _field(
            whole,
            feature,
            encoding=RAW if is_any_tensor(value) else LIST,
            required=required,
            default=None,
            part=CONTEXT,
            shape=type.shape,
            metadata={**type.metadata, **source.metadata},
            empty=empty,
        )
    metadata = None if form is None else form.metadata(in_list=True)
    return _field(
        whole, feature, encoding=encoding, required=required, default=default, part=part, metadata=metadata, empty=empty
    )


def _list_source(item: Field) -> ShapeSource | None:
    """Where the shapes of the arrays of a list are stored, whose `item` is this field; None for other fields.

    A shape with at most one unknown size is known from the values: its source has no feature.
    """
    source = item.shape_source
    if is_list_like(item.type) or (source is None and not is_any_tensor(item.type)):
        return None
    if item.encoding not in (BY_WIRE, RAW) and is_any_tensor(item.type):
        reason = f"the encoding {item.encoding!r} is not one of lists of arrays"
        raise SchemaError(reason, expected=(BY_WIRE, RAW), got=item.encoding)
    if source is not None:
        return source
    element, shape = element_and_shape(item.to_arrow())
    if shape.count(None) > 1:
        reason = f"the shape {shape} has several dimensions whose sizes are in no feature"
        raise SchemaError(reason, got=shape, hint="name the feature of each, or state the sizes")
    return ShapeSource(shape, element=element.name).decide(RAW, is_number=False, in_context=True)


@check_keywords
def image(
    shape: Any = None,
    mode: str | None = None,
    resize: tuple[int, int] | None = None,
    *,
    fit: ImageFit = "stretch",
    orient: bool = True,
    draft: bool = False,
    resample: ImageResample | None = None,
    layout: ImageLayout = "HWC",
    default: bytes | None = None,
    required: bool | None = None,
    feature: str | None = None,
    empty: str | None = None,
) -> Field:
    """A column of encoded images: decoded in arrays, to uint8 [height, width, channels]; read as bytes elsewhere.

    JPEG, PNG, WebP, GIF, BMP and TIFF; of several frames or pages the first is decoded. Or a column of tensors that are
    raw pixels: a report shows them, ``tfr convert`` makes PNG files of them, and arrays may be resized.

    >>> image((None, None, 3))
    Field(binary, shape (None, None, 3), image RGB)
    >>> image(mode="L", resize=(28, 28), fit="crop")
    Field(binary, image L, resize (28, 28), fit crop)
    >>> image(tensor("uint8", (3, "height", "width")), layout="CHW")
    Field(tensor<uint8>[3,?,?], encoding wire, shape from (3, 'height', 'width'), raw image CHW)

    Parameters
    ----------
    shape : sequence of int or None, or Field, optional
        (height, width, channels) of the decoded image; None where it varies. Images of another shape are a DecodeError;
        with `resize` it is not checked. Batches have one array of images where this or `resize` states their size. Or
        what `tensor` returns: raw pixels of uint8 or uint16 and 1, 3 or 4 channels, whose size is stated there. They
        stay as they are, unless `resize` is given; `mode`, `orient`, `draft` and
        `default` are for encoded images.
    mode : {"RGB", "L", "RGBA", "index", "unchanged"}, optional
        What pixels are converted to: colours, grey, colours and opacity; of 16 bits the upper 8 are used, as by
        TensorFlow's ``decode_png``. "index" is for masks of classes: the numbers of a palette's colours, or the values
        of a grey image of at most 8 bits, as one channel; any other image is a DecodeError. "unchanged"
        keeps what the image has, including the 16 bits of a grey PNG and, with the package tifffile, TIFFs of any
        number of channels and bits; 16 bits of several channels of a PNG are a DecodeError then. By default it follows
        from the channels of the shape (3, 1, 4; others: "unchanged"), without one it is "RGB".
    resize : (int, int), optional
        (height, width) to which each image is resized.
    resample : {"bilinear", "nearest"}, optional
        How: by bilinear interpolation that averages when it makes smaller, the default; or by the nearest pixel, the
        default of mode "index", which mixes no numbers of classes.
    fit : {"stretch", "contain", "crop", "pad"}, default "stretch"
        What to do with an image whose aspect ratio differs from that of `resize`. "stretch": the ratio changes. The
        others keep it: "contain" makes the image as large as fits in `resize`, so that sizes vary; "pad" does so too,
        and puts it in the middle of zeros; "crop" covers `resize`, and cuts off what is beyond it on two sides.
    orient : bool, default True
        Rotate and mirror pixels as the orientation in the EXIF data states. False keeps them as stored, as TensorFlow's
        decoders do, and as boxes that refer to stored pixels need.
    draft : bool, default False
        Decode a JPEG file to ½, ¼ or ⅛ of its sides, at least twice those of `resize`, before it is resized: faster,
        but pixels differ by a few levels.
    layout : {"HWC", "CHW"}, default "HWC"
        Of raw pixels: the order of height, width and channels in the tensor.
    default, required, feature, empty
        As in `scalar`.
    """
    from tfrecord_io.columns.schema.image_form import ImageForm, RawImageForm

    if isinstance(shape, Field):
        raw = RawImageForm(layout, resize, fit, "bilinear" if resample is None else resample)
        encoded = {"mode": mode, "orient": None if orient else orient, "draft": draft or None, "default": default}
        _check_raw_image(shape, encoded)
        if is_any_tensor(shape.type):
            raw.check(element_and_shape(shape.to_arrow())[0].name, shape.shape or (), feature or "")
        stated = {"required": required, "feature": feature, "empty": empty}
        changes: dict[str, Any] = {name: value for name, value in stated.items() if value is not None}
        return replace(shape, metadata={**shape.metadata, **raw.metadata}, **changes)
    if layout != "HWC":
        advice = 'pass what they are, as in tfr.image(tfr.tensor("uint8", (3, "height", "width")), layout="CHW")'
        raise SchemaError("layout= is for raw pixels", got=layout, hint=advice)
    axes = None if shape is None else as_shape(shape)
    metadata = ImageForm(axes, mode, resize=resize, fit=fit, orient=orient, draft=draft, resample=resample).metadata()  # type: ignore[arg-type]
    return _field(
        pa.binary(),
        feature,
        encoding=LIST,
        required=required,
        default=default,
        shape=axes,
        metadata=metadata,
        empty=empty,
    )


def _check_raw_image(pixels: Field, encoded: Mapping[str, Any]) -> None:
    """Refuse what is not a tensor, and the arguments of `image` for encoded images."""
    if not is_any_tensor(pixels.type) and pixels.shape_source is None:
        advice = 'pass a shape, or raw pixels, as in tfr.image(tfr.tensor("uint8", ("height", "width", 3)))'
        raise SchemaError("an image is not made of this field", expected="a tensor", got=repr(pixels), hint=advice)
    if (given := next((name for name, value in encoded.items() if value is not None), None)) is not None:
        advice = "leave it out: raw pixels stay as they are stored"
        raise SchemaError(f"{given}= is for encoded images", got=encoded[given], hint=advice)


@check_keywords
def tensor(
    dtype: Any,
    shape: Any,
    *,
    default: Any = None,
    required: bool | None = None,
    feature: str | None = None,
    encoding: str = BY_WIRE,
    empty: str | None = None,
) -> Field:
    """A column of arrays.

    >>> tensor("uint8", (28, 28))
    Field(tensor<uint8>[28,28], encoding wire)
    >>> tensor("complex64", (None, 3))
    Field(tensor<complex64>[?,3], encoding wire)
    >>> tensor("uint8", ("height", "width", 3))
    Field(tensor<uint8>[?,?,3], encoding wire, shape from ('height', 'width', 3))

    Parameters
    ----------
    dtype : pa.DataType, str or dtype
        Of one value: a number, bool, "complex64", "bfloat16", "int4", "S10", "U10", "datetime64[D]", "timedelta64[ms]";
        or bytes or text, of which a record has as many values. Beside names of features in `shape`, and where it has a
        "/", other text is the name of a feature that has the name of the dtype, or TensorFlow's number of it.
    shape : sequence of int, str or None; or str
        None or −1 is an unknown dimension. Without one the column is a fixed_shape_tensor, else a
        variable_shape_tensor. The size of one unknown dimension follows from the number of values; several need the
        companion feature ``x/shape``. Text is the name of a feature with the size of this dimension, as in
        ``("height", "width", 3)``; a single name is that of a feature with all sizes. These
        features need not be columns. The first records decide the type of the column: a fixed_shape_tensor if they
        all state one shape, which each later record must state, too (``sample="all"`` looks at all records first).
        Writers write the features again.
    default : object, optional
        An array of that shape; if all dimensions are known also one value for every element.
    required, feature, empty
        As in `scalar`.
    encoding : {"wire", "raw", "list", "tensor_proto", "npy"}
        "wire": bytes are decoded raw (C order, little-endian) and number lists are reshaped, as a record has it; "raw"
        and "list" accept one of the two only; "tensor_proto": what ``tf.io.serialize_tensor`` writes; "npy": what
        ``numpy.save`` writes.
    """
    if (source := _shape_source(dtype, shape)) is not None:
        return _stated_tensor(source, feature, encoding=encoding, required=required, default=default, empty=empty)
    axes = as_shape(shape)
    value = _element(dtype)
    if isinstance(value, Dtype):
        # `Field` refuses unknown encodings.
        is_self_describing = TENSOR_ENCODINGS.has(encoding) and encoding_rules(encoding).self_describing
        if not axes and not is_self_describing and value.plain is not None:
            return _field(value.plain, feature, encoding=encoding, required=required, default=default, empty=empty)
        type_, metadata = tensor_type(value, axes), dtype_metadata(value)
        return _field(
            type_,
            feature,
            encoding=encoding,
            required=required,
            default=default,
            shape=axes,
            metadata=metadata,
            empty=empty,
        )
    encoding = LIST if encoding == BY_WIRE else encoding  # of bytes or text, which a record has as values
    if not axes:
        return _field(value, feature, encoding=encoding, required=required, default=default, empty=empty)
    type_ = pa.list_(value) if None in axes else pa.list_(value, fixed_part(axes))
    return _field(type_, feature, encoding=encoding, required=required, default=default, shape=axes, empty=empty)


def _shape_source(dtype: Any, shape: Any) -> ShapeSource | None:
    """Where the shape or the dtype of a tensor stands, if features state it; None if the arguments say all."""
    axes: tuple[str | int | None, ...] | str
    if isinstance(shape, str):
        axes = shape
    elif isinstance(shape, Sequence) and any(isinstance(axis, str) for axis in shape):
        sizes = iter(as_shape([axis for axis in shape if not isinstance(axis, str)]))
        axes = tuple(axis if isinstance(axis, str) else next(sizes) for axis in shape)
    elif isinstance(dtype, str) and "/" in dtype:
        axes = as_shape(shape)
    else:
        return None
    names = [axes] if isinstance(axes, str) else [axis for axis in axes if isinstance(axis, str)]
    if "" in names:
        raise SchemaError("the name of a feature with a size is empty", got=shape)
    if names and not isinstance(axes, str) and axes.count(None) > 1:
        reason = f"the shape {axes} has several dimensions whose sizes are in no feature"
        raise SchemaError(reason, got=shape, hint="name the feature of each, or state the sizes")
    is_feature = isinstance(dtype, str) and Dtype.find(dtype) is None and not _is_type_name(dtype)
    return ShapeSource(axes, dtype if is_feature else None, element=None if is_feature else _number_dtype(dtype))


def _is_type_name(name: str) -> bool:
    """True if a type, such as "timestamp[us]", has this name: it is not that of a feature."""
    try:
        type_from_name(name)
    except SchemaError:
        return False
    return True


def _number_dtype(dtype: Any) -> str:
    """The name of a dtype whose arrays have bytes of a known width; SchemaError for others."""
    value = _element(dtype)
    if not isinstance(value, Dtype):
        raise SchemaError("bytes and text have no shape by features", got=str(dtype), hint="name a dtype of numbers")
    return value.name


def _stated_tensor(
    source: ShapeSource, feature: str | None, encoding: str, required: bool | None, default: Any, empty: str | None
) -> Field:
    """The field of a tensor whose shape features state; of binary type if its rank or its dtype is not declared."""
    if encoding not in (BY_WIRE, RAW, LIST):
        reason = f"the encoding {encoding!r} is not one of arrays whose shape is stored in other features"
        raise SchemaError(reason, expected=(BY_WIRE, RAW, LIST), got=encoding)
    if default is not None:
        raise SchemaError("no default of tensors whose shape is stored in other features", got=default)
    if encoding != BY_WIRE:
        source = source._replace(encoding=encoding)
    shape, keywords = source.shape, {"encoding": encoding, "required": required, "empty": empty}
    if shape is None or source.element is None:
        return Field("", pa.binary(), feature, metadata=source.metadata, **{**keywords, "encoding": LIST})  # type: ignore[arg-type]
    value = Dtype.of_name(source.element)
    metadata = {**dtype_metadata(value), **source.metadata}
    return Field("", tensor_type(value, shape), feature, metadata=metadata, shape=shape, **keywords)  # type: ignore[arg-type]


def _element(dtype: Any) -> Dtype | pa.DataType:
    """The elements of a tensor: an entry of the table of dtypes, or the type of bytes or text."""
    plain = getattr(dtype, "as_numpy_dtype", dtype)  # tf.DType
    is_dtype = isinstance(plain, np.dtype) or (isinstance(plain, type) and issubclass(plain, np.generic))
    try:
        if isinstance(plain, str) and (entry := Dtype.find(plain)) is not None:
            return entry
        if is_dtype and np.dtype(plain).kind != "O" and np.dtype(plain).itemsize:
            return Dtype.of_name(Dtype.name_of(plain))
        value = as_arrow_type(plain)
        if t.is_binary(value) or t.is_string(value):
            return value
        if t.is_timestamp(value) and value.tz is not None:
            raise ValueError("NumPy has no time zones")
        return Dtype.of_arrow(value)
    except ValueError as error:
        detail = "" if isinstance(error, SchemaError) else f": {error}"
        reason = f"tensors of {printable(str(dtype), 60)} are not supported{detail}"
        raise SchemaError(reason, got=str(dtype), hint=f"use {Dtype.SUPPORTED}, bytes or text") from None


@check_keywords
def sequence(item: Any, *, default: Any = None, required: bool | None = None, feature: str | None = None) -> Field:
    """A column read from a feature list of a SequenceExample.

    >>> sequence("int64")
    Field(list<item: int64>, feature list)
    >>> sequence(tensor("float32", (None, 2)))
    Field(list<item: tensor<float32>[?,2]>, feature list, encoding wire)

    Parameters
    ----------
    item : Field, pa.DataType, str or dtype
        One step: what a field maker returns, or a type. Its encoding and shape are used, its name and default are not.
    default : list, optional
        The value where the feature list is absent; None: null.
    required, feature
        As in `scalar`.
    """
    from tfrecord_io.columns.schema.image_form import image_form

    step = item if isinstance(item, Field) else Field("", as_arrow_type(item))
    if step.part == FEATURE_LIST:
        raise SchemaError("a step of a feature list cannot be a feature list itself", got=repr(step))
    if is_list_like(step.type) and ShapeSource.entry_of(step.metadata) is not None:
        reason = "a step of a feature list is one array, not a list of them"
        raise SchemaError(reason, got=repr(step), hint="make it of tensor()")
    type_ = pa.list_(step.type)
    if (form := image_form(step)) is not None:
        return _field(
            type_=type_,
            feature=feature,
            encoding=LIST,
            required=required,
            default=default,
            shape=None,
            part=FEATURE_LIST,
            metadata=form.metadata(in_list=True),
        )
    return _field(
        type_=type_,
        feature=feature,
        encoding=step.encoding,
        required=required,
        default=default,
        shape=step.shape,
        part=FEATURE_LIST,
        metadata=step.metadata,
    )


def _field(
    type_: pa.DataType,
    feature: str | None,
    encoding: str,
    required: bool | None,
    default: Any,
    shape: Any = None,
    part: str | None = None,
    metadata: Mapping[bytes, bytes] | None = None,
    empty: str | None = None,
) -> Field:
    """A field without a name; its attributes are in the order of those of `Field`."""
    attributes = (feature, encoding, required, default, metadata or {}, shape, part, empty)
    return Field("", type_, *attributes)  # type: ignore[arg-type]


_CALL = re.compile(r"\s*(?:tensor|image|sequence|list)\s*\(|\s*image\s*$")


def is_call(type_: object) -> bool:
    """True if a type is the text of a call of a field maker, whose shape may be stored in features."""
    return isinstance(type_, str) and _CALL.match(type_) is not None


class _CallText:
    """The text of a call of a field maker, for a shell: names stand without quotes.

    >>> _CallText("tensor(uint8, (height, width, 3))").field()
    Field(tensor<uint8>[?,?,3], encoding wire, shape from ('height', 'width', 3))
    >>> _CallText("sequence(image(resize=(8, 8)))").field()
    Field(list<item: binary>, feature list, image RGB, resize (8, 8))
    """

    _CONSTANTS: ClassVar[dict[str, Any]] = {"?": None, "None": None, "True": True, "False": False}

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [token for part in re.findall(r"[(),=]|[^(),=]+", text) if (token := part.strip())]
        self._at = 0

    def field(self) -> Field:
        """The field that the call makes; SchemaError if the text is not such a call."""
        value = self._value()
        if self._at < len(self._tokens) or not isinstance(value, Field):
            raise self._error("it has no end, or words after it")
        return value

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._next()
        self._at += 1
        return token

    def _value(self) -> Any:
        """The next value: a number, a name, a tuple of values, or what a call returns."""
        token = self._take()
        if token == "(":
            return tuple(value for _, value in self._arguments())
        if token in ("", ")", ",", "="):
            raise self._error("a value is missing")
        if self._next() == "(":
            self._at += 1
            return self._call(token, self._arguments())
        if token == "image":
            return image()
        if token in self._CONSTANTS:
            return self._CONSTANTS[token]
        return int(token) if token.lstrip("-").isdecimal() else token.strip("'\"")

    def _arguments(self) -> list[tuple[str | None, Any]]:
        """The values up to a closing parenthesis, each with its keyword, if it has one."""
        values: list[tuple[str | None, Any]] = []
        while self._next() != ")":
            keyword = self._tokens[self._at] if self._tokens[self._at + 1 : self._at + 2] == ["="] else None
            self._at += 0 if keyword is None else 2
            values.append((keyword, self._value()))
            if self._next() == ",":
                self._at += 1
            elif self._next() != ")":
                raise self._error("a comma or parenthesis is missing")
        self._at += 1
        return values

    def _call(self, maker: str, arguments: list[tuple[str | None, Any]]) -> Field:
        makers: dict[str, Callable[..., Field]] = {
            call.__name__.rstrip("_"): call for call in (tensor, sequence, list_)
        }
        makers["image"] = _image_of_text
        if maker not in makers:
            raise self._error(f"'{printable(maker)}' makes no field")
        keywords = {name: value for name, value in arguments if name is not None}
        try:
            return makers[maker](*(value for name, value in arguments if name is None), **keywords)
        except TypeError as error:
            raise self._error(str(error)) from None

    def _error(self, reason: str) -> SchemaError:
        hint = "write it as tensor(uint8,(height,width,3)), image(resize=(64,64)), sequence(tensor(uint8,1024))"
        return SchemaError(f"'{printable(self._text, 200)}' is not a type: {reason}", got=self._text, hint=hint)


def _image_of_text(*values: Any, **keywords: Any) -> Field:
    """A field of `image`; in a shell, ``image(uint8,(3,height,width),CHW)`` are raw pixels."""
    if not values or not isinstance(values[0], str):
        return image(*values, **keywords)
    if len(values) not in (2, 3):
        raise TypeError("raw pixels are image(DTYPE,SHAPE) or image(DTYPE,SHAPE,LAYOUT)")
    dtype, shape, *layout = values
    return image(tensor(dtype, shape), layout=layout[0] if layout else "HWC", **keywords)


def as_field(name: str, source: Any) -> Field:
    """The field of a column: from a field, an Arrow type or field, a type's name, a dtype or a mapping, for a struct.

    >>> as_field("x", "tensor(uint8, (height, width, 3))")
    Field(x: tensor<uint8>[?,?,3], encoding wire, shape from ('height', 'width', 3))
    >>> as_field("x", "image(uint8, (28, 28, 1))")
    Field(x: tensor<uint8>[28,28,1], encoding wire, raw image HWC)

    SchemaError if a name is not that of a type, TypeError if `source` is none of these.
    """
    if not isinstance(name, str):
        raise TypeError(f"a column's name is a str, not {type(name).__name__}")
    if isinstance(source, Field):
        return source.named(name)
    if isinstance(source, pa.Field):
        return Field.from_arrow(source).named(name)
    if isinstance(source, Mapping):
        return Field(name, _struct_type(source))
    if isinstance(source, str):
        if is_call(source):
            return _CallText(source).field().named(name)
        if (marked := marked_tensor(source)) is not None:
            return Field(name, marked[0], metadata=marked[1])
    try:
        return Field(name, as_arrow_type(source))
    except TypeError as error:
        raise TypeError(f"column '{printable(name)}': {error}") from None


def _struct_type(fields: Mapping[str, Any]) -> pa.DataType:
    """The type of a struct with these fields, each of whose types is given as that of a column."""
    children = []
    for name, source in fields.items():
        field = as_field(name, source)
        child = field.to_arrow()
        name_of_property = "steps" if field.part == FEATURE_LIST else column_property(child.metadata)
        if name_of_property is not None:
            reason = f"'{printable(name)}' is the field of a struct, and only columns have {name_of_property}"
            raise SchemaError(reason, got=repr(field), hint="declare its feature as a column of its own")
        children.append(child)
    return pa.struct(children)
