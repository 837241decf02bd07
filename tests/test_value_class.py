"""Value classes are what frozen dataclasses with the same options are."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.value_class import value_class


@dataclass(frozen=True, slots=True)
class Expected:
    a: object
    b: object = None
    c: object = field(default=0, compare=False)
    d: list[int] = field(default_factory=list, repr=False)
    e: object = field(default=5, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "b", [self.b])


@value_class
class Value:
    a: object
    b: object = None
    c: object = field(default=0, compare=False)
    d: list[int] = field(default_factory=list, repr=False)
    e: object = field(default=5, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "b", [self.b])


@value_class(kw_only=True, slots=False)
class Base:
    name: str = ""


@value_class(kw_only=True, slots=False)
class Derived(Base):
    number: int


@value_class(eq=False)
class Shown:
    a: float

    def __repr__(self) -> str:
        return "shown"


@value_class
class OddNames:
    missing: int = 1
    a: list[int] = field(default_factory=list)
    set_a: int = 2
    make_a: int = 3


class Named:
    def __repr__(self) -> str:
        return "named"


@value_class(repr=False)
class Unshown:
    a: int


class Both(Unshown, Named):
    pass


VALUES = st.lists(st.one_of(st.none(), st.integers(0, 2), st.just(float("nan"))), min_size=1, max_size=4)


@given(VALUES, VALUES)
def test_like_a_dataclass(first: list[Any], second: list[Any]) -> None:
    value, expected = Value(*first), Expected(*first)
    assert repr(value) == repr(expected).replace("Expected", "Value")
    assert (value == Value(*second)) == (expected == Expected(*second))
    assert value != expected
    for same in (copy.copy(value), pickle.loads(pickle.dumps(value))):
        assert [repr(getattr(same, field.name)) for field in fields(Value)] == [
            repr(getattr(expected, field.name)) for field in fields(Expected)
        ]
    assert repr(replace(value, a=3)) == repr(replace(expected, a=3)).replace("Expected", "Value")


def test_like_a_dataclass_for_those_who_inspect_it() -> None:
    signature, expected = inspect.signature(Value), inspect.signature(Expected)
    assert list(signature.parameters) == list(expected.parameters)
    for name, parameter in signature.parameters.items():
        assert (parameter.kind, parameter.annotation) == (
            expected.parameters[name].kind,
            expected.parameters[name].annotation,
        )
    assert Value.__match_args__ == Expected.__match_args__  # type: ignore[attr-defined]


def test_no_default_is_shared() -> None:
    assert Value(1).d is not Value(1).d


@pytest.mark.parametrize("value", [Value(1), Derived(number=1)], ids=["slots", "dict"])
def test_it_is_frozen(value: Any) -> None:
    name = fields(value)[0].name
    with pytest.raises(FrozenInstanceError, match=f"{type(value).__name__}.{name} cannot be changed"):
        setattr(value, name, 2)
    with pytest.raises(FrozenInstanceError):
        delattr(value, name)
    with pytest.raises(AttributeError):
        value.other = 2


@pytest.mark.parametrize("arguments", [(), (1, 2, 3, [], 5)])
def test_arguments_that_do_not_fit(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="__init__"):
        Value(*arguments)


def test_a_value_that_holds_itself_is_shown() -> None:
    held: list[object] = []
    held.append(Value(held))
    assert repr(held) == "[Value(a=[...], b=[None], c=0, e=5)]"


def test_classes_that_inherit() -> None:
    assert repr(Derived(name="x", number=1)) == "Derived(name='x', number=1)"
    assert Derived(number=1) == Derived(number=1)
    assert Base() != Derived(number=1)
    assert len({Derived(number=1), Derived(number=1), Base()}) == 2


def test_what_a_class_defines_itself_stays() -> None:
    one = Shown(1)
    assert repr(one) == "shown"
    assert one != Shown(1)
    assert len({one, Shown(1)}) == 2


def test_a_class_without_a_repr_leaves_it_to_others() -> None:
    assert repr(Both(1)) == "named"


def test_names_of_fields_are_those_of_no_function() -> None:
    assert repr(OddNames()) == "OddNames(missing=1, a=[], set_a=2, make_a=3)"
