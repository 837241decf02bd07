"""Features that state the shape and the dtype of the arrays in another feature.

This library writes companions: ``x/shape`` and ``x/dtype`` state them for the bytes in ``x``. Files of other programs
have features such as ``height`` and ``width`` beside ``image_raw``: a `ShapeSource` is JSON in the metadata of a field,
by which readers take the shape of each record from these features, and writers write them.

Tests: tests/laws/test_shapes_from_features.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tfrecord_io.errors import SchemaError

_KEY = b"tfrecord_io.shape_source"  # of the metadata of a field
Axis = str | int | None
"""A dimension: the feature with its size, the size itself, or None where it follows from the number of values."""


class ShapeSource(NamedTuple):
    """Where the shape and the dtype of the arrays of a column stand.

    >>> ShapeSource(("height", "width", 3)).features
    ('height', 'width')
    >>> ShapeSource("image/shape", "image/dtype").features
    ('image/shape', 'image/dtype')
    """

    axes: tuple[Axis, ...] | str  # of each dimension, or the feature with the sizes of all dimensions
    dtype: str | None = None  # the feature with the name of the dtype, or TensorFlow's number of it
    is_number: bool = False  # the dtype feature has numbers
    element: str | None = None  # the name of the dtype that the caller declared
    is_open: bool = True  # the type of the column is decided by the first records
    encoding: str | None = None  # "list" or "raw": how the first records store the values
    in_context: bool = False  # of the steps of a feature list: the context states one shape for all steps
    in_struct: bool = False  # declared for the field of a struct; an array that moves into one has companions

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes] | None, feature: str = "") -> ShapeSource | None:
        """Read the entry of a field's metadata, None without one; SchemaError if it is damaged."""
        text = cls.entry_of(metadata or {})
        return None if text is None else cls.from_entry(text, feature)

    @classmethod
    def from_entry(cls, text: bytes, feature: str = "") -> ShapeSource:
        """Read such an entry; SchemaError if it is damaged."""
        import json  # for fields with such an entry only

        try:
            entry = json.loads(text)
            axes = entry.pop("axes")
            source = cls(axes if isinstance(axes, str) else tuple(axes), **entry)
            source.check()
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise SchemaError(f"its metadata is damaged: {_KEY.decode()}", feature=feature) from error
        return source

    @staticmethod
    def entry_of(metadata: Mapping[bytes, bytes]) -> bytes | None:
        """The entry of a field's metadata, as it is; None without one."""
        return metadata.get(_KEY)

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The entry of a field's metadata."""
        import json  # for fields with such an entry only

        defaults = self._field_defaults
        entry = {name: value for name, value in self._asdict().items() if name == "axes" or value != defaults[name]}
        return {_KEY: json.dumps(entry, ensure_ascii=False).encode()}

    def check(self) -> None:
        """Raise ValueError for values that `tensor` does not make."""
        axes = [self.axes] if isinstance(self.axes, str) else self.axes
        for axis in axes:
            if not isinstance(axis, str | int | None) or isinstance(axis, bool) or axis == "":
                raise ValueError(f"{axis!r} is not a dimension")
        texts = (self.dtype, self.element, self.encoding)
        if not all(isinstance(text, str | None) for text in texts) or self.encoding not in (None, "list", "raw"):
            raise ValueError("the dtype or the encoding is not text")

    def check_rank(self, rank: int, feature: str) -> None:
        """Raise SchemaError for arrays of another number of dimensions than a damaged entry states."""
        if not isinstance(self.axes, str) and len(self.axes) != rank:
            reason = (
                f"its metadata is damaged: {_KEY.decode()} has {len(self.axes)} dimensions, but the type has {rank}"
            )
            raise SchemaError(reason, feature=feature, expected=rank, got=len(self.axes))

    @property
    def holds_in_structs(self) -> bool:
        """True if the features state the shape of the field of a struct, too."""
        return self.is_open or self.in_struct or not self.features

    @property
    def sizes(self) -> tuple[str, ...]:
        """The features with sizes of dimensions, each once."""
        axes = (self.axes,) if isinstance(self.axes, str) else self.axes
        return tuple(dict.fromkeys(axis for axis in axes if isinstance(axis, str)))

    @property
    def axis_sizes(self) -> tuple[str, ...]:
        """The features with the size of one dimension each; none if one feature has the sizes of all."""
        return () if isinstance(self.axes, str) else self.sizes

    @property
    def features(self) -> tuple[str, ...]:
        """All features that are read with the values."""
        return self.sizes if self.dtype is None else (*self.sizes, self.dtype)

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """The dimensions as far as they are known without a record; None if their number is not."""
        if isinstance(self.axes, str):
            return None
        return tuple(axis if isinstance(axis, int) else None for axis in self.axes)

    def decide(self, encoding: str | None, *, is_number: bool, in_context: bool) -> ShapeSource:
        """Return the source of a column whose type is decided."""
        return self._replace(is_open=False, encoding=encoding, is_number=is_number, in_context=in_context)

    @staticmethod
    def companions(feature: str) -> tuple[str, str]:
        """Names of the shape and the dtype companion of a raw feature."""
        return f"{feature}/shape", f"{feature}/dtype"

    @staticmethod
    def described_feature(name: str) -> str | None:
        """The feature with the companion `name`, None if that has not the form of a companion.

        >>> ShapeSource.described_feature("x/shape")
        'x'
        """
        feature, slash, last = name.rpartition("/")
        return feature if slash and last in ("shape", "dtype") else None

    @staticmethod
    def stated_by(feature: str, metadata: Mapping[bytes, bytes] | None) -> tuple[str, ...]:
        """The features that state shape and dtype of the arrays in `feature`: its companions, or those of its source.

        >>> ShapeSource.stated_by("x", None)
        ('x/shape', 'x/dtype')
        """
        source = ShapeSource.from_metadata(metadata, feature)
        return ShapeSource.companions(feature) if source is None else source.features
