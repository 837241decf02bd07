"""The rows that a DataLoader of PyTorch reads of a stream."""

from __future__ import annotations

from typing import Any


def seen(stream: Any, workers: int, **options: Any) -> list[int]:
    from torch.utils.data import DataLoader

    context = {"multiprocessing_context": "fork"} if workers else {}
    loader = DataLoader(stream, batch_size=None, num_workers=workers, **context, **options)
    return [n for batch in loader for n in batch["x"].tolist()]
