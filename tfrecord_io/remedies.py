"""What messages say to do, as data: keywords and calls, which each caller reads in its own words.

`say` makes a text of a template, whose fields are what depends on the caller::

    say("read it with {read_arrays(missing='mask')}") | say("pass {missing='mask'}") & "rename it"

``|`` adds an alternative, ``&`` another clause; a plain text is a sentence for every caller. The text is a ``str`` in
the words of Python. A caller with other words, such as a command with its options, is a `Speaker`: the text is written
with its words, without the alternatives that it does not have. Values and paths are never looked into.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

_FIELD = re.compile(r"\{([^{}]*)\}")
_KEYWORD = re.compile(r"([\w.]+)=(.*)", re.DOTALL)


class Keyword(NamedTuple):
    """A keyword of the caller; `value` is the source of its value, None if that is for the caller to choose.

    `text` is how it is written where another call or an option takes it. ``limits.features`` is a part of the keyword
    `limits`, a `Limits`; ``source_options.delimiter`` is one of the keyword `source_options`, a dict.
    """

    name: str
    value: str | None = None
    text: str | None = None

    def __str__(self) -> str:
        if "." in self.name and self.text is None:
            return f"tfr.dataset(…, {self.of_whole})"
        return self.text or f"{self.name}={self.value or ''}"

    @property
    def of_whole(self) -> Keyword:
        """The keyword that this is a part of."""
        name, _, part = self.name.partition(".")
        value = self.value or "…"
        return Keyword(name, f"tfr.Limits({part}={value})" if name == "limits" else f"{{{part!r}: {value}}}")


class Call(NamedTuple):
    """A call in Python, and the command that does the same, or None."""

    python: str
    command: str | None = None

    def __str__(self) -> str:
        return self.python


class Written(str):
    """The value of a keyword as source, which is written as it is."""

    __slots__ = ()


Part = str | Keyword | Call
Phrase = tuple[Part, ...]
Clauses = tuple[tuple[Phrase, ...], ...]
Speaker = Callable[[Keyword | Call], Part | None]
"""What a caller has instead of a part; None if it has nothing."""


@dataclass(frozen=True)
class Caller:
    """A call in Python that has these keywords, all if it is None, without some; its names for some of them.

    `without` has names of keywords, or ``name=value`` as `say` writes it, for one that does not take this value.
    `elsewhere` is how others are written, by name, with ``{}`` for the value.
    """

    keywords: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, part: Keyword | Call) -> Part | None:
        if isinstance(part, Call):
            return part
        part = part._replace(name=self.names.get(part.name, part.name))
        part = part.of_whole if "." in part.name else part
        if part.name in self.without or f"{part.name}={part.value}" in self.without:
            return None
        if self.keywords is None or part.name in self.keywords:
            return part if self.keywords is None else part._replace(text=None)
        form = self.elsewhere.get(part.name)
        return None if form is None else part._replace(text=form.format(part.value or "…"))


class Message(str):
    """A text whose parts are known: clauses of alternatives. The first clause is the reason, unless all are advice."""

    __slots__ = ("clauses", "speakers")
    clauses: Clauses
    speakers: tuple[Speaker, ...]  # who reads it, the innermost call first

    def __new__(cls, clauses: Clauses) -> Self:
        self = super().__new__(cls, _joined(clauses))
        self.clauses, self.speakers = clauses, ()
        return self

    def __str__(self) -> str:
        return self.rendered(*self.speakers)

    def __reduce__(self) -> tuple[Any, ...]:
        return Message, (self.clauses,), (None, {"speakers": self.speakers})

    def __and__(self, other: str) -> Message:
        return Message(self.clauses + clauses_of(other))

    def __rand__(self, other: str) -> Message:
        return Message(clauses_of(other) + self.clauses)

    def __or__(self, other: str) -> Message:
        first, *others = clauses_of(other)
        return Message((*self.clauses[:-1], self.clauses[-1] + first, *others))

    def __ror__(self, other: str) -> Message:
        return Message(clauses_of(other)) | self

    def __add__(self, other: str) -> Message:
        return say("{}{}", self, other)

    def __radd__(self, other: str) -> Message:
        return say("{}{}", other, self)

    def rendered(self, *speakers: Speaker, is_advice: bool = False) -> str:
        """The text in the words of a caller, without the advice that it does not have; its reason stays.

        >>> text = "it is odd" & say("pass {limit=5}") | say("call {read_table(path)}") & say("see {on_error=}")
        >>> text.rendered(lambda part: "-n 5" if part == Keyword("limit", "5") else None)
        'it is odd; pass -n 5'
        """
        clauses = self.clauses
        for speaker in speakers:
            reason = () if is_advice else (tuple(_said(phrase, speaker) or phrase for phrase in clauses[0]),)
            others = (tuple(filter(None, (_said(phrase, speaker) for phrase in c))) for c in clauses[len(reason) :])
            clauses = (*reason, *filter(None, others))
        return _joined(clauses)


def _said(phrase: Phrase, speaker: Speaker) -> Phrase | None:
    """A phrase in the words of a caller; None if it does not have all."""
    parts = [part if isinstance(part, str) else speaker(part) for part in phrase]
    return None if None in parts else tuple(part for part in parts if part is not None)


def _joined(clauses: Clauses) -> str:
    return "; ".join(", or ".join("".join(map(str, phrase)) for phrase in clause) for clause in clauses)


def clauses_of(text: str) -> Clauses:
    """The clauses of a text; a plain one is a sentence."""
    return text.clauses if isinstance(text, Message) else (((text,),),)


def say(template: str, *values: object, **keywords: object) -> Message:
    """A text with parts that depend on the caller.

    Fields are ``{}``, the next of the values, a `Message` among them; ``{limit=}``, a keyword, with its value if that
    is passed; ``{limit=5}``; and ``{tfr.salvage(path, target)|tfr salvage PATH TARGET}``, a call and its command.

    >>> say("{limit=} of {}; see {tfr.merge|tfr merge}", "a", limit=-1)
    'limit=-1 of a; see tfr.merge'
    """
    following = iter(values)
    phrase: list[Part] = []
    alternatives: tuple[Phrase, ...] = ()
    clauses: Clauses = ()
    texts = _FIELD.split(template)
    for number, text in enumerate(texts):
        if number % 2 == 0:
            phrase += [text] if text else []
        elif keyword := _KEYWORD.fullmatch(text):
            phrase.append(Keyword(keyword[1], keyword[2] or _source(keywords, keyword[1])))
        elif text:
            python, _, command = text.partition("|")
            phrase.append(Call(python, command if "|" in text else None))
        elif isinstance(value := next(following), Message) and number == len(texts) - 2 and not texts[-1]:
            (first, *alternatives_), *clauses_ = value.clauses
            phrase += first
            alternatives, clauses = tuple(alternatives_), tuple(clauses_)
        else:
            part = value if isinstance(value, Keyword | Call) else str(value)
            phrase += _flat(value) if isinstance(value, Message) else [part]
    return Message(((tuple(phrase), *alternatives), *clauses))


def _source(keywords: dict[str, object], name: str) -> str | None:
    name = name.rpartition(".")[2]
    if name not in keywords:
        return None
    value = keywords[name]
    return str(value) if isinstance(value, Written) else repr(value)


def _flat(message: Message) -> list[Part]:
    """The parts of a text inside another one, of which none is left out."""
    parts: list[Part] = []
    for number, clause in enumerate(message.clauses):
        for other, phrase in enumerate(clause):
            parts += [*(["; "] if number and not other else [", or "] if other else []), *phrase]
    return parts


_SPEAKERS: ContextVar[tuple[Speaker, ...]] = ContextVar("_SPEAKERS", default=())


@contextmanager
def addressed_to(speaker: Speaker) -> Iterator[None]:
    """Address the errors and the warnings of a block to a caller."""
    before = _SPEAKERS.set((speaker, *_SPEAKERS.get()))
    try:
        yield
    except Exception as error:
        address(error, speaker)
        raise
    finally:
        _SPEAKERS.reset(before)


def address_warning(text: str) -> str:
    """The text of a warning, addressed to the callers of the blocks that run."""
    if isinstance(text, Message):
        text.speakers = (*text.speakers, *_SPEAKERS.get())
    return text


def address(error: Exception, speaker: Speaker) -> None:
    """Note who reads the texts of an error; the outer call comes last."""
    texts = {id(text): text for text in (error, *error.args, getattr(error, "strerror", None))}
    for text in texts.values():
        if hasattr(text, "speakers"):
            text.speakers = (*text.speakers, speaker)
