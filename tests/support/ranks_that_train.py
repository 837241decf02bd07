"""A process of several that train: `python -m torch.distributed.run … ranks_that_train.py LIBRARY DATA OUT`.

LIBRARY is torch, lightning, accelerate or trainer. The program iterates over the dataset in DATA in every way, and
writes the ids of the rows that this process had in each epoch to a file in OUT.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

import tfrecord_io as tfr

EPOCHS = 2
BATCH = 12  # rows; 2 and 3 ranks divide it, as split_batches needs
Cases = Iterator[tuple[str, Any, Callable[[Any], list[list[int]]]]]  # a name, a stream, and how it is used


def loader(stream: Any, workers: int, batch_size: int | None, start: str = "fork") -> Any:
    context = {"multiprocessing_context": start} if workers else {}
    return DataLoader(stream, batch_size=batch_size, num_workers=workers, **context)


def ids_of(batches: Any) -> list[int]:
    return [n for batch in batches for n in batch["x"].tolist()]


def stream_of(data: str, **options: Any) -> Any:
    return tfr.dataset(data).to_torch(shuffle_buffer=20, seed=7, **options)


def of_torch(data: str) -> Cases:
    def used(workers: int, start: str, stream: Any) -> list[list[int]]:
        return [ids_of(loader(stream, workers, None, start)) for _ in range(EPOCHS)]

    for uneven in ("keep", "drop", "pad"):
        for workers, start in ((0, ""), (2, "fork"), *([(2, "spawn")] if uneven == "drop" else [])):
            stream = stream_of(data, batch_size=5, uneven=uneven, workers=workers)
            yield f"{uneven}-{workers}{start}", stream, partial(used, workers, start)


def of_lightning(data: str) -> Cases:
    import lightning
    from lightning.pytorch.callbacks import ModelCheckpoint
    from torchdata.stateful_dataloader import StatefulDataLoader

    warnings.filterwarnings("ignore", module="lightning")

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.ids = torch.nn.Linear(1, 1), [[] for _ in range(EPOCHS)]  # type: ignore[var-annotated]

        def training_step(self, batch: Any, _: int) -> Any:
            self.ids[self.current_epoch] += batch["x"].tolist()
            return self.layer(batch["x"][:, None].float()).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.0)

    class Rows(lightning.LightningDataModule):
        def __init__(self, rows: Any) -> None:
            super().__init__()
            self.rows = rows

        def train_dataloader(self) -> Any:
            self.rows.dataset.set_epoch(self.trainer.fit_loop.epoch_progress.current.processed)
            return self.rows

    def trainer(*callbacks: Any, max_steps: int = -1) -> Any:
        return lightning.Trainer(
            accelerator="cpu",
            devices=int(os.environ["WORLD_SIZE"]),
            strategy="ddp",
            max_epochs=EPOCHS,
            max_steps=max_steps,
            callbacks=list(callbacks),
            logger=False,
            enable_checkpointing=max_steps > 0,
            enable_progress_bar=False,
            enable_model_summary=False,
        )

    def used(workers: int, stream: Any) -> list[list[int]]:
        model = Model()
        trainer().fit(model, loader(stream, workers, None))
        ids: list[list[int]] = model.ids
        return ids

    def resumed(workers: int, stream: Any, more: int = 2) -> list[list[int]]:
        model, steps = Model(), len(stream) + more
        saved = ModelCheckpoint("saved", every_n_train_steps=steps if more else None, save_top_k=-1)  # None: each epoch
        for callbacks, max_steps in (([saved], steps), ([], -1)):
            context = {"multiprocessing_context": "fork"} if workers else {}
            rows = StatefulDataLoader(stream, batch_size=None, num_workers=workers, **context)
            stream.set_epoch(0)  # as in a new process
            checkpoint = saved.best_model_path or None
            trainer(*callbacks, max_steps=max_steps).fit(model, Rows(rows), ckpt_path=checkpoint, weights_only=False)
        ids: list[list[int]] = model.ids
        return ids

    for uneven in ("drop", "pad"):
        for workers in (0, 2):
            uses = {"used": used, "resumed": resumed, "next_epoch": partial(resumed, more=0)}
            for name, use in uses.items() if uneven == "drop" else [("used", used)]:
                stream = stream_of(data, batch_size=5, uneven=uneven, workers=workers, parts=4)
                yield f"{uneven}-{workers}-{name}", stream, partial(use, workers)


def of_accelerate(data: str) -> Cases:
    from accelerate import Accelerator, DataLoaderConfiguration

    def used(workers: int, start: str, batch_size: int | None, options: Any, stream: Any) -> list[list[int]]:
        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**options))
        prepared = accelerator.prepare(loader(stream, workers, batch_size, start))
        epochs = [list(prepared) for _ in range(EPOCHS)]
        if options.get("dispatch_batches", True):  # that of the others leaves out what each worker pads
            assert [len(prepared)] * EPOCHS == list(map(len, epochs))
        return list(map(ids_of, epochs))

    for dispatch in (True, False):
        for split in (False, True):
            for workers, start in ((0, ""), (2, "fork"), *([] if split else [(2, "spawn")])):
                options = {"dispatch_batches": dispatch, "split_batches": split}
                name = f"{'dispatch' if dispatch else 'shard'}-split{split}-{workers}{start}"
                yield name, stream_of(data, workers=workers), partial(used, workers, start, BATCH, options)
    for workers in (0, 2):
        stream = stream_of(data, batch_size=4, workers=workers)
        yield f"dispatch-batches-{workers}", stream, partial(used, workers, "fork", None, {})

    def not_prepared(workers: int, stream: Any) -> list[list[int]]:
        Accelerator(cpu=True)
        return [ids_of(loader(stream, workers, None)) for _ in range(EPOCHS)]

    for workers in (0, 2):
        yield f"drop-{workers}", stream_of(data, batch_size=4, uneven="drop"), partial(not_prepared, workers)


def of_trainer(data: str) -> Cases:
    from transformers import Trainer, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.ids = torch.nn.Linear(1, 1), []  # type: ignore[var-annotated]

        def forward(self, x: Any) -> dict[str, Any]:
            self.ids += x.tolist()
            return {"loss": self.layer(x[:, None].float()).mean()}

    def used(workers: int, options: Any, stream: Any) -> list[list[int]]:
        arguments = TrainingArguments(
            "out",
            use_cpu=True,
            num_train_epochs=EPOCHS,
            report_to="none",
            disable_tqdm=True,
            save_strategy="no",
            logging_strategy="no",
            per_device_train_batch_size=BATCH,
            dataloader_num_workers=workers,
            dataloader_pin_memory=False,
            accelerator_config={**options, "even_batches": True},
        )
        model = Model()
        trainer = Trainer(model, arguments, train_dataset=stream)
        steps = len(trainer.get_train_dataloader())
        trainer.train()
        if not options["split_batches"]:  # of which a shard overestimates its length
            assert trainer.state.global_step == steps * EPOCHS
        half = len(model.ids) // EPOCHS  # each epoch has as many, with what is padded
        return [model.ids[:half], model.ids[half:]]

    for dispatch in (None, False):  # None: True, as for any IterableDataset
        for split in (False, True):
            for workers in (0, 2):
                options = {"dispatch_batches": dispatch, "split_batches": split}
                name = f"{'dispatch' if dispatch is None else 'shard'}-split{split}-{workers}"
                yield name, stream_of(data, workers=workers), partial(used, workers, options)


LIBRARIES = {"torch": of_torch, "lightning": of_lightning, "accelerate": of_accelerate, "trainer": of_trainer}


def begin(library: str) -> None:
    """Initialize ``torch.distributed`` as the libraries do."""
    if library in ("torch", "lightning"):
        torch.distributed.init_process_group("gloo")
    else:
        from accelerate import PartialState

        PartialState(cpu=True)


def main() -> None:
    library, data, out = sys.argv[1:]
    before = list(LIBRARIES[library](data))
    begin(library)
    found: dict[str, Any] = {}
    for when, cases in {"before": before, "after": LIBRARIES[library](data)}.items():
        for name, stream, use in cases:
            found[f"{name}-{when}"] = use(stream)
    Path(out, f"{torch.distributed.get_rank()}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
