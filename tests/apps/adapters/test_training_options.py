"""The documentation's table of options of training and libraries: each works the same, or is an error with advice."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "train-with-shuffling.md"
ROWS = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
CALLS = ["iter_arrays", "to_torch", "to_torch_map", "to_tf", "to_grain", "to_hf"]
TABLE = {
    option: dict(zip(CALLS, cells.split(" | "), strict=True))
    for options, cells in ROWS
    if cells.count("|") == 5
    for option in re.findall(r"\w+", options)
}
# Of each option a value, and keywords that it needs.
VALUES: dict[str, dict[str, Any]] = {
    "batch_size": {"batch_size": 5},
    "shuffle_buffer": {"shuffle_buffer": 9, "seed": 1},
    "drop_last": {"drop_last": True},
    "epochs": {"epochs": 2},
    "worker": {"worker": (1, 2)},
    "uneven": {"uneven": "drop", "worker": (1, 2)},
    "parts": {"parts": 2},
    "state": {"state": {}},
    "ragged": {"ragged": "pad"},
    "pad_value": {"pad_to": 9, "pad_value": {"t": -1}},
    "max_length": {"pad_to": 4, "max_length": 4},
    "pad_to": {"pad_to": 9},
    "missing": {"pad_to": 9, "missing": "mask"},
    "bucket_by": {"bucket_by": "t", "bucket_sizes": [4, 8]},
    "pack": {"pack": {"t": 16}},
    "cut": {"cut": True, "pack": {"t": 16}},
    "end_token": {"end_token": -1, "cut": True, "pack": {"t": 16}},
    "cu_seqlens": {"cu_seqlens": True, "pack": {"t": 16}},
}
BATCHED = ("batch_size", "drop_last", "bucket_by", "pack", "cut", "end_token", "cu_seqlens")
Arrays = Mapping[str, Any]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tfr.Dataset:
    path = tmp_path_factory.mktemp("options") / "lists@3"
    lists = [list(range(n, n + n % 9)) for n in range(31)]
    tfr.write_tfrecord({"t": lists}, path, schema={"t": tfr.list_("int64")}, write_index=True)
    return tfr.dataset(path, schema={"t": tfr.list_("int64")})


def test_the_table_has_all_options() -> None:
    assert TABLE.keys() == VALUES.keys()


def batches_of(data: tfr.Dataset, option: str, batch_size: int = 5) -> list[Arrays]:
    """The batches of `iter_arrays`."""
    return list(data.iter_arrays(**{"batch_size": batch_size, **VALUES[option]}))


def same(got: list[Arrays], expected: list[Arrays], to_array: Callable[[Any], Any] = np.asarray) -> None:
    assert len(got) == len(expected)
    for own, other in zip(got, expected, strict=True):
        assert own.keys() >= other.keys()  # and masks
        for name, array in other.items():
            if isinstance(array, np.ma.MaskedArray):
                np.testing.assert_array_equal(to_array(own[f"{name}/mask"]), np.ma.getmaskarray(array))
                array = array.data
            if array.dtype == object:
                assert [np.asarray(row).tolist() for row in own[name]] == [row.tolist() for row in array]
            else:
                np.testing.assert_array_equal(to_array(own[name]), array)


def works(call: str, option: str) -> bool:
    return TABLE[option][call].startswith("✓")


def refused(data: tfr.Dataset, call: str, option: str, **others: Any) -> None:
    name = next(name for name in VALUES[option] if name == option)
    with pytest.raises((TypeError, ValueError), match=rf"{name}.*(: \w|;)") as raised:
        getattr(data, call)(**{name: VALUES[option][name], **others})
    text = str(raised.value)
    assert any(word in text for word in ("state_dict", "sampler", "repeat", "Grain", "to_torch")), text


@pytest.mark.parametrize("option", VALUES)
def test_torch(data: tfr.Dataset, option: str) -> None:
    pytest.importorskip("torch")
    if not works("to_torch", option):
        return refused(data, "to_torch", option, batch_size=5)
    keywords = {"batch_size": 5, **VALUES[option]}
    if "worker" in keywords:
        keywords["rank"] = keywords.pop("worker")
    return same(list(data.to_torch(**keywords)), batches_of(data, option))


@pytest.mark.parametrize("option", VALUES)
def test_torch_map(data: tfr.Dataset, option: str) -> None:
    torch = pytest.importorskip("torch")
    if not works("to_torch_map", option):
        return refused(data, "to_torch_map", option)
    if option in BATCHED:
        rows = data.to_torch_map(**{"batch_size": 5, **VALUES[option]})
        loader = torch.utils.data.DataLoader(rows, batch_size=None, num_workers=2)
        assert len(loader) == len(rows)
        same([rows[i] for i in range(len(rows))], batches_of(data, option))
        same(rows[1:3], batches_of(data, option)[1:3])
        return same(list(loader), batches_of(data, option))
    loader = torch.utils.data.DataLoader(data.to_torch_map(**VALUES[option]), batch_size=5)
    return same(list(loader), batches_of(data, option))


@pytest.mark.parametrize("option", VALUES)
def test_tf(data: tfr.Dataset, option: str) -> None:
    tf = pytest.importorskip("tensorflow")
    keywords = {"batch_size": 5, **VALUES[option]}
    if not works("to_tf", option):
        return refused(data, "to_tf", option, batch_size=5)
    batches = list(data.to_tf(**keywords))

    def to_array(tensor: Any) -> Any:
        return np.asarray(tensor)

    for batch in batches:
        for name, tensor in batch.items():
            if isinstance(tensor, tf.RaggedTensor):
                batch[name] = [np.array(row) for row in tensor.to_list()]
    return same(batches, batches_of(data, option), to_array)


@pytest.mark.parametrize("option", VALUES)
def test_grain(data: tfr.Dataset, option: str) -> None:
    grain = pytest.importorskip("grain")
    if not works("to_grain", option):
        return refused(data, "to_grain", option)
    if option in BATCHED:
        source = data.to_grain(**{"batch_size": 5, **VALUES[option]})
        return same(list(grain.MapDataset.source(source)), batches_of(data, option))
    dataset = grain.MapDataset.source(data.to_grain(**VALUES[option])).batch(5)
    return same([dataset[i] for i in range(len(dataset))], batches_of(data, option))


@pytest.mark.parametrize("option", VALUES)
def test_hf(data: tfr.Dataset, option: str) -> None:
    pytest.importorskip("datasets")
    if not works("to_hf", option):
        return refused(data, "to_hf", option)
    stream = data.to_hf(**VALUES[option]).with_format("numpy")
    return same(list(stream.batch(5)), batches_of(data, option))


def test_batches_by_number_have_another_order_with_a_seed(data: tfr.Dataset) -> None:
    for arrangement in (VALUES["bucket_by"], VALUES["pack"], VALUES["end_token"]):
        sources = [data.to_grain(batch_size=4, **arrangement, seed=seed) for seed in (1, 1, 0, None)]
        epochs = [[source[i]["t"].tolist() for i in range(len(source))] for source in sources]
        assert epochs[0] == epochs[1]
        assert len({repr(epoch) for epoch in epochs}) == 3
        for epoch in epochs:
            found = sorted(number for batch in epoch for row in batch for number in row if number > 0)
            assert found == sorted(number for n in range(31) for number in range(n, n + n % 9) if number)
        dropped = data.to_grain(batch_size=4, **arrangement, drop_last=True)
        assert len(dropped) <= len(sources[0])
        larger = data.to_grain(batch_size=5, **arrangement, seed=1)
        shown = [*map(repr, sources), repr(dropped), repr(larger)]  # what Grain compares when it restores a checkpoint
        assert shown[0] == shown[1]
        assert len(set(shown)) == len(shown) - 1


def test_what_batches_by_number_are_not_possible_with(data: tfr.Dataset) -> None:
    with pytest.raises(ValueError, match="bucket_by= and pack= make batches: pass batch_size="):
        data.to_grain(pack={"t": 16})
    for name, value in {"drop_last": True, "seed": 0, "cut": True}.items():
        with pytest.raises(ValueError, match=f"{name}={value}: rows by number are put in order"):
            data.to_grain(**{name: value})
    with pytest.raises(ValueError, match="batch_size=0"):
        data.to_grain(batch_size=0)
    source = data.to_grain(batch_size=3, pack={"t": 4})
    with pytest.raises(tfr.errors.SchemaError, match=r"record 5: .*has 5 values"):
        list(map(source.__getitem__, range(len(source))))
    with pytest.raises(IndexError, match="out of range"):
        data.to_grain(batch_size=3, pack={"t": 16})[99]


@pytest.mark.parametrize("column", ["number", "text", "tensor", "nested", "absent"])
@pytest.mark.parametrize("option", ["bucket_by", "pack", "pad_to"])
def test_columns_that_are_no_lists_are_refused_at_once(tmp_path: Path, option: str, column: str) -> None:
    columns = {"number": [1], "text": ["a"], "tensor": np.zeros((1, 2), "float32"), "nested": [[[[1], [2, 3]]]]}
    tfr.write_tfrecord({name: columns[name] for name in columns if name == column} or {"other": [1]}, tmp_path / "a")
    data = tfr.dataset(tmp_path / "a")
    keywords: dict[str, Any] = {
        "bucket_by": {"bucket_by": column, "bucket_sizes": [4], "batch_size": 2},
        "pack": {"pack": {column: 4}, "batch_size": 2},
        "pad_to": {"pad_to": {column: 4}},
    }[option]
    with pytest.raises(tfr.errors.SchemaError) as expected:
        data.iter_arrays(**{"batch_size": 2, **keywords})
    with pytest.raises(type(expected.value)) as raised:
        data.to_grain(**keywords)
    assert str(raised.value).partition(";")[0] == str(expected.value).partition(";")[0]


@pytest.mark.parametrize("arrangement", ["bucket_by", "pack", "cut"])
def test_lists_of_structs_make_batches_by_number(tmp_path: Path, arrangement: str) -> None:
    width = 5 if arrangement == "cut" else 3
    rows = [{"t": [n] * (n % 5), "u": [n] * (n % width), "v": [n] * (n % 5)} for n in range(20)]
    tfr.write_tfrecord({"s": rows}, tmp_path / "a")
    data = tfr.dataset(tmp_path / "a")
    keywords: dict[str, Any] = {
        "bucket_by": {"bucket_by": ["s/u", "s/t"], "bucket_sizes": [2, 4]},
        "pack": {"pack": {"s/u": 8, "s/t": 8, "s/v": 8}},
        "cut": {"pack": {"s/t": 6, "s/u": 6, "s/v": 6}, "cut": True},
    }[arrangement]
    source = data.to_grain(batch_size=3, **keywords)
    same([source[i] for i in range(len(source))], list(data.iter_arrays(batch_size=3, **keywords)))


@pytest.fixture(scope="module", params=["mixture", "balanced", "windows", "mixture of windows"])
def derived(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Any:
    folder = tmp_path_factory.mktemp("derived")
    schema = {"t": tfr.list_("int64"), "kind": "int64", "steps/x": tfr.list_("int64")}
    parts: list[Any] = []
    for name, size in {"a": 31, "b": 11}.items():
        rows = range(100 * len(parts), 100 * len(parts) + size)
        columns = {
            "t": [[n] * (n % 9) for n in rows],
            "kind": [n % 5 // 4 for n in rows],
            "steps/x": [[10 * n + step for step in range(n % 4)] for n in rows],
        }
        tfr.write_tfrecord(columns, folder / f"{name}@3", schema=schema, write_index=True)
        parts.append(tfr.dataset(folder / f"{name}@3", schema=schema))
    if "windows" in request.param:
        parts = [tfr.windows(part.select(["t", "steps/x"]), length=2) for part in parts]
    else:
        parts = [part.select(["t"] if request.param == "mixture" else ["t", "kind"]) for part in parts]
    if request.param == "windows":
        return parts[0]
    balance = "kind" if request.param == "balanced" else None
    return tfr.mix(parts, [2, 1], stop="all", balance=balance).select("!kind" if balance else "*")


ARRANGEMENTS = [VALUES["bucket_by"], {"pack": {"t": 16}}]


def arrangements_of(derived: Any) -> list[dict[str, Any]]:
    """Arrangements that the columns allow: single values and windows are not packed."""
    return ARRANGEMENTS if derived.columns == ["t"] else ARRANGEMENTS[:1]


def test_batches_by_number_of_sources_are_those_of_their_streams(derived: Any) -> None:
    for arrangement in arrangements_of(derived):
        source = derived.to_grain(batch_size=4, **arrangement)
        same([source[i] for i in range(len(source))], list(derived.iter_arrays(batch_size=4, **arrangement)))
        shuffled = [derived.to_grain(batch_size=4, **arrangement, seed=seed) for seed in (1, 1, 0, None)]
        epochs = [[batch["t"].tolist() for batch in map(each.__getitem__, range(len(each)))] for each in shuffled]
        assert epochs[0] == epochs[1]
        assert len({repr(epoch) for epoch in epochs}) == 3


def test_torch_batches_by_number_of_sources(derived: Any) -> None:
    torch = pytest.importorskip("torch")
    for arrangement in arrangements_of(derived):
        rows = derived.to_torch_map(batch_size=4, **arrangement)
        expected = list(derived.iter_arrays(batch_size=4, **arrangement))
        same(list(torch.utils.data.DataLoader(rows, batch_size=None, num_workers=2)), expected)


def test_grain_batches_by_number_of_sources(derived: Any) -> None:
    grain = pytest.importorskip("grain")
    for arrangement in arrangements_of(derived):
        source = grain.MapDataset.source(derived.to_grain(batch_size=4, **arrangement))
        same(list(source), list(derived.iter_arrays(batch_size=4, **arrangement)))


def check_equal_parts(derived: Any, call: str, worker: str) -> None:
    keywords = {"batch_size": 4, "ragged": "pad", "uneven": "pad", "shuffle_buffer": 9, "seed": 2}
    for number in range(3):
        expected = list(derived.iter_arrays(**keywords, worker=(number, 3)))
        same(list(getattr(derived, call)(**keywords, **{worker: (number, 3)})), expected)


def test_torch_takes_equal_parts_of_sources(derived: Any) -> None:
    pytest.importorskip("torch")
    check_equal_parts(derived, "to_torch", "rank")


def test_tf_takes_equal_parts_of_sources(derived: Any) -> None:
    pytest.importorskip("tensorflow")
    check_equal_parts(derived, "to_tf", "worker")
