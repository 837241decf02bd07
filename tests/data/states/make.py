"""Write states of iterators, and the batches that follow each of them: ``python tests/data/states/make.py``.

States that programs have saved go on exactly, so these files are not made again: cases of new features are added by
``python tests/data/states/make.py FILE.json`` under another name.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import tfrecord_io as tfr

FOLDER = Path(__file__).parent
SIZES = {"a": [13, 9, 0, 17], "b": [11, 6, 5, 4], "one": [29]}
ENDLESS = 9  # batches that are taken of a stream without an end
SOURCES = {
    "files": {"files": "a"},
    "one file": {"files": "one"},
    "filtered": {"files": "a", "filter": ["n", "!=", 5]},
    "limited": {"files": "a", "offset": 3, "limit": 25},
    "limited and filtered": {"files": "a", "offset": 3, "limit": 25, "filter": ["n", "!=", 5]},
    "mixed, first": {"mix": ["a", "b"], "weights": [3, 1], "stop": "first"},
    "mixed, all": {"mix": ["a", "b"], "weights": [1, 1], "stop": "all"},
    "mixed, never": {"mix": ["a", "one"], "weights": [1, 2], "stop": "never"},
    "mixed, filtered": {"mix": ["a", "one"], "weights": [1, 2], "stop": "all", "filter": ["n", "!=", 5]},
    "balanced, first": {"mix": ["a", "b"], "weights": [1, 2], "stop": "first", "balance": "kind"},
    "balanced, all": {"mix": ["a", "one"], "weights": [1, 2], "stop": "all", "balance": "kind"},
    "windows": {"files": "a", "windows": {"length": 3}},
    "windows to the edge": {"files": "a", "windows": {"length": 4, "stride": 3, "pad": "edge"}},
    "windows, filtered": {"files": "a", "filter": ["n", "!=", 5], "windows": {"length": 2, "stride": 2}},
    "windows, limited": {"files": "a", "offset": 3, "limit": 25, "windows": {"length": 2, "stride": 2}},
}
OPTIONS: list[dict[str, Any]] = [
    {**order, **part, **form}
    for order, part, form in itertools.product(
        [{}, {"shuffle_buffer": 7, "seed": 5}],
        [
            {},
            {"worker": [1, 2]},
            {"worker": [2, 3], "drop_last": True},
            {"worker": [4, 7]},
            {"worker": [0, 2], "uneven": "pad"},
            {"worker": [4, 5], "uneven": "pad"},
            {"worker": [2, 3], "uneven": "drop"},
        ],
        [{"batch_size": 4}],
    )
] + [
    {**order, **part, **form}
    for order, part, form in itertools.product(
        [{}, {"shuffle_buffer": 7, "seed": 5}],
        [{}, {"worker": [1, 2]}],
        [{"batch_size": 4, "bucket_by": "t", "bucket_sizes": [2, 6]}, {"batch_size": 2, "pack": {"t": 6}}],
    )
]
# Of later features, by file.
BY_COLUMN = {"files": "a", "windows": {"offsets": {"x": [-1, 0, 2]}, "stride": 2}}
LATER: dict[str, list[tuple[dict[str, Any], list[dict[str, Any]]]]] = {
    "cut.json": [
        (
            {name: SOURCES[name] for name in ("files", "filtered", "mixed, all")},
            [
                {**order, **part, "batch_size": 2, "pack": {"t": 4}, "cut": True, "end_token": -1}
                for order, part in itertools.product([{}, {"shuffle_buffer": 7, "seed": 5}], [{}, {"worker": [1, 2]}])
            ],
        ),
        (
            {
                "windows by column": BY_COLUMN,
                "windows by column, mixed": {**BY_COLUMN, "mix": ["a", "b"], "stop": "all"},
            },
            OPTIONS[:14:2],
        ),
    ]
}
POSITIONS = [1, 4, 8]  # batches before a state
BY_NUMBER: list[dict[str, Any]] = [
    {},
    {"batch_size": 4, "bucket_by": "t", "bucket_sizes": [2, 6]},
    {"batch_size": 2, "pack": {"t": 6}, "seed": 3},
]


def write_files() -> None:
    number = 0
    for name, sizes in SIZES.items():
        for file, size in enumerate(sizes):
            rows = range(number, number + size)
            columns = {
                "n": pa.array(rows, pa.int64()),
                "kind": pa.array([row % 3 % 2 for row in rows], pa.int64()),
                "t": pa.array([[row] * (row % 6) for row in rows], pa.list_(pa.int64())),
                "steps/x": pa.array(
                    [[10 * row + step for step in range(row * 7 % 8)] for row in rows], pa.list_(pa.int64())
                ),
            }
            tfr.write_tfrecord(pa.table(columns), FOLDER / f"{name}-{file}.tfrecord")
            number += size


def dataset_of(name: str, source: dict[str, Any], keywords: dict[str, Any]) -> tfr.Dataset:
    paths = [FOLDER / f"{name}-{file}.tfrecord" for file in range(len(SIZES[name]))]
    schema = {"n": "int64", "kind": "int64", "t": "list<int64>", "steps/x": "list<int64>"}
    limits = {key: source[key] for key in ("offset", "limit") if key in source}
    data = tfr.dataset(paths, schema=schema, **limits)
    data = data.filter([tuple(source["filter"])]) if "filter" in source else data
    if "pack" in keywords:  # of each column, or it is an error
        return data.select(["t", *(["steps/x"] if "windows" in source else [])])
    return data.select([name for name in data.columns if name != "steps/x"]) if "windows" not in source else data


def opened(source: dict[str, Any], packed: dict[str, Any]) -> Any:
    """The dataset, mixture or windows that a case describes."""
    names = source.get("mix", [source.get("files")])
    parts: list[Any] = [dataset_of(name, source, packed) for name in names]
    if "windows" in source:
        parts = [tfr.windows(part, **source["windows"]) for part in parts]
    if "mix" not in source:
        return parts[0]
    keywords = {key: source[key] for key in ("weights", "stop", "balance") if key in source}
    return tfr.mix(parts, **keywords, seed=4, source_column=None if "pack" in packed else "source")


def arrays_as_text(batch: dict[str, Any]) -> str:
    """All values of a batch."""
    return json.dumps({name: [str(array.dtype), array.tolist()] for name, array in batch.items()}, default=repr)


def numbers_of(batch: dict[str, Any]) -> list[Any]:
    """What tells a person which rows a batch has."""
    return batch["n" if "n" in batch else "t"].tolist()  # type: ignore[no-any-return]


def followed(batches: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """The batches that follow: the rows of the first, and a digest of all."""
    taken = list(itertools.islice(batches, ENDLESS))
    digest = hashlib.sha256("\n".join(map(arrays_as_text, taken)).encode()).hexdigest()[:16]
    return {"next": numbers_of(taken[0]) if taken else [], "batches": len(taken), "digest": digest}


def columns_of(source: dict[str, Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords that lists of different lengths need."""
    packs = "pack" in keywords or "bucket_by" in keywords
    return {} if packs else {"ragged": "pad"}


def states_of(source: dict[str, Any], keywords: dict[str, Any]) -> dict[str, Any] | None:
    """States at some positions, with what they have in common apart; None if the combination is an error."""
    given = {"epochs": 2, **columns_of(source, keywords), **keywords}
    try:
        data = opened(source, keywords)
        data.iter_arrays(**given).close()
    except (TypeError, ValueError):
        return None
    shared, found = {}, []
    for position in POSITIONS:
        batches = data.iter_arrays(**given)
        if any(next(batches, None) is None for _ in range(position)):
            break
        state = json.loads(json.dumps(batches.state()))
        shared = {name: state.pop(name) for name in ("version", "files", "options")}
        found.append({"state": state, **followed(iter_on(data.iter_arrays(**given, state={**shared, **state})))})
    return {"keywords": given, "shared": shared, "positions": found} if found else None


def iter_on(batches: Any) -> Iterator[dict[str, Any]]:
    while (batch := next(batches, None)) is not None:
        yield batch


def batches_by_number(data: Any, keywords: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows by number in one batch, or all batches by number."""
    from tfrecord_io.rows.training.batches_by_number import open_by_number

    options = dict(keywords)
    rows = open_by_number(data, options.pop("batch_size", None), **options, **({} if keywords else {"pad_to": 6}))
    return list(rows.take(range(len(rows)))) if keywords else [rows.arrays(range(len(rows)))]


def numbered_cases(source: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for keywords in BY_NUMBER:
        try:
            found = batches_by_number(opened(source, keywords), keywords)
        except (TypeError, ValueError):
            continue
        digest = hashlib.sha256("\n".join(map(arrays_as_text, found)).encode()).hexdigest()[:16]
        yield {"keywords": keywords, "next": numbers_of(found[0]), "batches": len(found), "digest": digest}


def main(name_of_file: str) -> None:
    groups = LATER.get(name_of_file, [(SOURCES, OPTIONS)])
    cases = [
        {"name": name, "source": source, **case}
        for sources, options in groups
        for name, source in sources.items()
        for keywords in options
        if (case := states_of(source, keywords)) is not None
    ]
    numbered = [
        {"name": name, "source": source, **case}
        for sources, _ in groups
        for name, source in sources.items()
        for case in numbered_cases(source)
    ]
    path = FOLDER / name_of_file
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    of_numbers = ",\n".join(json.dumps(case, separators=(",", ":")) for case in numbered)
    path.write_text(f'{{"states": [\n{lines}\n],\n"numbered": [\n{of_numbers}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        write_files()
    main(sys.argv[1] if len(sys.argv) > 1 else "states.json")
