"""The part of the rows that each rank of PyTorch reads, also where accelerate distributes them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrecord_io as tfr
from loaded_rows import seen
from tfrecord_io.read.file_indexes import write_indexes

torch = pytest.importorskip("torch")


def test_ranks_share_a_mixture_by_one_seed(numbers: tfr.Dataset) -> None:
    mixture = tfr.mix([numbers, numbers.limit(5)], stop="all")
    with pytest.raises(ValueError, match="a mixture with shuffle_buffer= needs the same seed="):
        mixture.to_torch(rank=(0, 2), shuffle_buffer=5)
    mixture = tfr.mix([numbers, numbers], stop="all")  # of five files, enough for two ranks, not for eight workers
    stream = mixture.to_torch(batch_size=4, rank=(0, 2), shuffle_buffer=5)
    assert seen(stream, 0)
    with pytest.raises(ValueError, match="a mixture with shuffle_buffer= needs the same seed="):
        seen(stream, 4)
    assert seen(mixture.to_torch(batch_size=4, rank=(0, 2), shuffle_buffer=5, seed=0), 4)
    assert set(seen(mixture.to_torch(batch_size=4, shuffle_buffer=5), 6)) == set(range(61))


def test_the_rank_is_that_of_torch_distributed(numbers: tfr.Dataset, tmp_path: Path) -> None:
    stream = numbers.to_torch()
    assert stream.place().rank == (0, 1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/../store", rank=0, world_size=1)
    try:
        assert stream.place().rank == numbers.to_torch().place().rank == (0, 1)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_of_a_launcher_do_not_all_read_everything(
    numbers: tfr.Dataset, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """torchrun sets WORLD_SIZE; without `init_process_group` each process would train on the same rows."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=r"WORLD_SIZE=2, but torch\.distributed is not initialized.*rank=\(i, 2\)"):
        seen(numbers.to_torch(batch_size=4), workers)
    assert sorted(seen(numbers.to_torch(batch_size=4, rank=(0, 1)), workers)) == list(range(61))


@pytest.fixture
def second_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is rank 1 of two."""
    for name, value in {"is_initialized": True, "get_rank": 1, "get_world_size": 2}.items():
        monkeypatch.setattr(torch.distributed, name, lambda value=value: value)


@pytest.mark.usefixtures("second_of_two", "forgotten_state")
def test_a_rank_has_its_part_and_what_accelerate_deals_out_is_all(numbers: tfr.Dataset, tmp_path: Path) -> None:
    write_indexes(sorted(tmp_path.glob("*.tfrecord")))
    shards = pytest.importorskip("accelerate.data_loader")
    stream = numbers.to_torch(shuffle_buffer=9, seed=1, workers=0)
    assert len(stream) == len(list(stream)) < 61
    shard = shards.IterableDatasetShard(stream, batch_size=1, num_processes=1, process_index=0)
    assert len(shard) == 61
    assert sorted(int(row["x"]) for row in shard) == list(range(61))
    with pytest.raises(ValueError, match=r"rank=\(0, 2\): IterableDatasetShard of accelerate splits the batches"):
        list(shards.IterableDatasetShard(numbers.to_torch(rank=(0, 2)), num_processes=2))
    with pytest.raises(ValueError, match="needs the same seed= in all ranks"):
        list(shards.IterableDatasetShard(numbers.to_torch(shuffle_buffer=9), num_processes=2))


@pytest.mark.usefixtures("second_of_two", "forgotten_state")
@pytest.mark.parametrize("workers", [0, 2])
def test_accelerate_cannot_deal_out_batches_to_ranks_that_each_read_all(numbers: tfr.Dataset, workers: int) -> None:
    """Accelerate would fail when it multiplies the batch size of the loader, which is None."""
    accelerate = pytest.importorskip("accelerate.data_loader")
    stream = numbers.to_torch(batch_size=4, workers=workers)
    loader = torch.utils.data.DataLoader(stream, batch_size=None, num_workers=workers)
    prepared = accelerate.prepare_data_loader(
        loader, num_processes=2, process_index=1, dispatch_batches=False, put_on_device=False
    )
    with pytest.raises(ValueError, match=r"dispatch_batches is off.* omit batch_size= in to_torch"):
        iter(prepared).__next__()
    with pytest.raises(ValueError, match="dispatch_batches is off"):
        len(prepared.dataset)


@pytest.mark.usefixtures("second_of_two")
def test_ranks_that_are_found_need_one_seed(numbers: tfr.Dataset) -> None:
    stream = numbers.to_torch(batch_size=4, uneven="drop", shuffle_buffer=5)
    with pytest.raises(ValueError, match="needs the same seed="):
        iter(stream)
    with pytest.raises(ValueError, match="a mixture with shuffle_buffer= needs the same seed="):
        iter(tfr.mix([numbers, numbers.limit(5)], stop="all").to_torch(shuffle_buffer=5))
