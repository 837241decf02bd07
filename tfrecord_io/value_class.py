"""Frozen dataclasses that take a fourth of the time to define, which was half of the time of a process's first call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def value_class(cls: type[T], /) -> type[T]: ...


@overload
def value_class(
    *, eq: bool = True, kw_only: bool = False, repr: bool = True, slots: bool = True
) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(
    cls: Any = None, /, *, eq: bool = True, kw_only: bool = False, repr: bool = True, slots: bool = True
) -> Any:
    """Define a class as ``dataclass(frozen=True, slots=True)`` does, in a fourth of its time.

    `dataclass` compiles the methods of each class. Here `__init__` is compiled; all classes share the others.

    >>> @value_class
    ... class Span:
    ...     begin: int
    ...     end: int = 0
    >>> Span(3), Span(3) == Span(3, 0), len({Span(3), Span(3)})
    (Span(begin=3, end=0), True, 1)
    """

    def defined(cls: Any) -> Any:
        made: Any = dataclass(init=False, repr=False, eq=False, kw_only=kw_only, slots=slots)(cls)
        made.__init__ = _init(made, slots)
        made.__setattr__ = made.__delattr__ = _refuse
        if slots:
            made.__getstate__, made.__setstate__ = _state, _set_state
        if repr and made.__repr__ is object.__repr__:
            made.__repr__ = _repr
        if eq:
            made._compared = attrgetter("__class__", *(own.name for own in fields(made) if own.compare))
            made.__eq__, made.__hash__ = _eq, _hash
        return made

    return defined if cls is None else defined(cls)


def _init(made: Any, slots: bool) -> Any:
    """The `__init__` of the class: it calls the setters of the slots, which are not refused."""
    parameters, keywords, body = ["self"], list[str](), list[str]()
    scope: dict[str, Any] = {"__none": MISSING}  # with names that no field has, which are parameters
    for own in fields(made):
        name = value = own.name
        parameter = name
        if own.default_factory is not MISSING:
            parameter, scope[f"__make_{name}"] = f"{name}=__none", own.default_factory
            value = f"__make_{name}() if {name} is __none else {name}"
        elif own.default is not MISSING:
            parameter, scope[f"__default_{name}"] = f"{name}=__default_{name}", own.default
        (keywords if own.kw_only else parameters).append(parameter)
        if slots:
            scope[f"__set_{name}"] = getattr(made, name).__set__
        body.append(f"__set_{name}(self, {value})" if slots else f"self.__dict__[{name!r}] = {value}")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    star = ["*"] if keywords else []
    exec(f"def __init__({', '.join(parameters + star + keywords)}):\n " + "\n ".join(body or ["pass"]), scope)
    init = scope["__init__"]
    init.__annotations__ = {own.name: own.type for own in fields(made)}
    return init


def _refuse(self: Any, name: str, value: object = None) -> NoReturn:
    raise FrozenInstanceError(f"{type(self).__qualname__}.{name} cannot be changed")


def _state(self: Any) -> list[Any]:
    return [getattr(self, own.name) for own in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for own, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, own.name, value)


@recursive_repr()
def _repr(self: Any) -> str:
    values = (f"{own.name}={getattr(self, own.name)!r}" for own in fields(self) if own.repr)
    return f"{type(self).__qualname__}({', '.join(values)})"


def _eq(self: Any, other: Any) -> bool:
    return self._compared(self) == self._compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(self._compared(self))
