"""dev/rows.md has a sentence for each attribute of a dtype, codec, format, operator, on_error and adapter."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from tfrecord_io.base.libraries import Adapter
from tfrecord_io.base.options.on_damage import OnDamage
from tfrecord_io.base.options.operators import Operator
from tfrecord_io.bytes.compression import Codec
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.bytes.format.known_formats import Format

PAGE = Path(__file__).parents[1] / "dev" / "rows.md"
CLASSES: dict[str, type[Any]] = {
    "A dtype": Dtype,
    "A codec": Codec,
    "A format": Format,
    "An operator": Operator,
    "An on_error": OnDamage,
    "An adapter": Adapter,
}


def attributes(class_: type[Any]) -> list[str]:
    """The fields of a dataclass or a NamedTuple; of another class all public names that it annotates or defines."""
    if is_dataclass(class_):
        return [field.name for field in fields(class_)]
    if hasattr(class_, "_fields"):
        return list(class_._fields)
    return [name for name in {**class_.__annotations__, **vars(class_)} if not name.startswith("_")]


def sections() -> dict[str, dict[str, str]]:
    """The sentences of each section, by the attribute."""
    parts = re.split(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    rows = (dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE)) for text in parts[1::2])
    return dict(zip(parts[::2], rows, strict=True))


def test_the_page_has_a_section_for_each_class() -> None:
    assert list(sections()) == list(CLASSES)


@pytest.mark.parametrize("title", CLASSES)
def test_each_attribute_has_its_sentence(title: str) -> None:
    class_, sentences = CLASSES[title], sections()[title]
    names = attributes(class_)
    lacking = [f"| `{name}` | <what must be true of it, in one sentence> |" for name in names if name not in sentences]
    assert not lacking, f"add to '{title}' in dev/rows.md, for {class_.__name__}: " + "\n".join(lacking)
    spare = [name for name in sentences if name not in names]
    assert not spare, f"remove from '{title}' in dev/rows.md what {class_.__name__} does not have: {', '.join(spare)}"
    unfinished = [name for name, text in sentences.items() if not re.fullmatch(r"[A-Z`].{10,}\.", text)]
    assert not unfinished, (
        f"write a sentence, with a full stop, for {', '.join(unfinished)} in '{title}' of dev/rows.md"
    )


def test_no_question_has_an_answer_by_default() -> None:
    with_default = [field.name for field in fields(Operator) if field.default is not MISSING]
    with_default += Dtype._field_defaults
    assert not with_default, f"state {', '.join(with_default)} in each row, without a default"
