"""``hagane data``: how fast a dataset loads."""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hagane.cli.numbers import not_negative
from hagane.cli.terminal.progress import working
from hagane.cli.terminal.width import show
from hagane.errors import HaganeError, InvalidArgument
from hagane.frontends.python.enter.explore import place_of
from hagane.training import Measurement, measure
from hagane.training.errors import SampleError
from hagane.training.iterators import MultiprocessIterator
from hagane.training.iterators.cores import default_worker_count

app = typer.Typer(no_args_is_help=True, help="Datasets: measure how fast they load.")


@app.callback()
def _data() -> None:
    """Datasets: measure how fast they load."""


@app.command()
def bench(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET.py:make", help="File and a function (or dataset).")
    ],
    batch_size: Annotated[int, typer.Option(help="Samples in a batch.")] = 32,
    workers: Annotated[
        str | None, typer.Option(help="Numbers of workers to try, such as 0,1,2.")
    ] = None,
    prefetch: Annotated[
        int, typer.Option(help="Batches made ahead of time.", callback=not_negative)
    ] = 2,
    samples: Annotated[
        bool, typer.Option("--samples", help="Give out lists of samples, not stacked arrays.")
    ] = False,
    compute_ms: Annotated[
        float, typer.Option(help="Simulate a step of so many milliseconds.", callback=not_negative)
    ] = 0.0,
    batches: Annotated[int, typer.Option(help="Most batches in a measurement.")] = 50,
    seconds: Annotated[
        float, typer.Option(help="Most seconds in a measurement.", callback=not_negative)
    ] = 3.0,
    start_method: Annotated[str | None, typer.Option(help="forkserver, spawn or fork.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Measure loading against a simulated step, for several numbers of workers."""
    with working(f"making {dataset}"):
        made = load_dataset(dataset)
    counts = _counts(workers)
    runs = []
    for count in counts:
        try:
            with MultiprocessIterator(
                made,
                batch_size,
                n_processes=count,
                n_prefetch=prefetch,
                seed=0,
                collate=None if samples else "stack",
                start_method=start_method,
            ) as iterator:
                batch = describe(iterator.next())
                result = measure(
                    iterator,
                    lambda _: time.sleep(compute_ms / 1000) if compute_ms else None,
                    batches=batches,
                    seconds=seconds,
                )
        except SampleError as error:
            raise HaganeError(str(error).split("\n\n")[0]) from error
        runs.append(_row(count, batch_size, batch, result))
        if not as_json:
            show(f"{count} workers: {runs[-1]['samples_per_second']:,.0f} samples/s; {result}")
    if as_json:
        print(
            json.dumps(
                {
                    "dataset": dataset,
                    "samples": len(made),
                    "batch_size": batch_size,
                    "batch": batch,
                    "runs": runs,
                }
            )
        )
    else:
        show(f"a batch of {batch_size} from {len(made):,} samples: {batch}")


def _row(count: int, batch_size: int, batch: str, result: Measurement) -> dict[str, Any]:
    return {
        "workers": count,
        "limit": result.limit,
        "loading_seconds": result.loading,
        "compute_seconds": result.compute,
        "iteration_seconds": result.iteration,
        "waiting_share": result.waiting,
        "samples_per_second": batch_size / result.loading if result.loading else 0.0,
        "batches": result.batches,
    }


def _counts(text: str | None) -> list[int]:
    if text is None:
        return sorted({0, 1, default_worker_count()})
    words = text.split(",")
    if not all(word.strip().isdigit() for word in words):
        raise InvalidArgument(f"--workers: expected numbers such as 0,1,2, got '{text}'")
    return [int(word) for word in words]


def load_dataset(target: str) -> Any:
    """Return the dataset that ``FILE.py:NAME`` names, calling NAME if it is a function.

    The file is imported under its own name, so that workers can import it too.

    Raises:
        InvalidArgument: There is no such file or name, or its code raises.
    """
    name, colon, member = target.rpartition(":")
    if not colon or not name.endswith(".py") or not member:
        raise InvalidArgument(f"expected DATASET.py:make, a file and a name in it, got '{target}'")
    path = Path(name)
    if not path.is_file():
        raise InvalidArgument(f"there is no file '{path}'")
    sys.path.insert(0, str(path.resolve().parent))
    try:
        module = importlib.import_module(path.stem)
    except Exception as error:
        raise InvalidArgument(
            f"{place_of(error, path)}: {type(error).__name__}: {error}"
        ) from error
    if Path(getattr(module, "__file__", None) or "").resolve() != path.resolve():
        raise InvalidArgument(
            f"'{path.stem}' is also the name of another module ({module.__name__}); rename the file"
        )
    if not hasattr(module, member):
        there = [each for each in vars(module) if not each.startswith("_")]
        raise InvalidArgument(
            f"{path}: there is no '{member}'; it defines {', '.join(there) or 'nothing'}"
        )
    made = getattr(module, member)
    if callable(made) and not hasattr(made, "__getitem__"):
        try:
            made = made()
        except HaganeError:
            raise
        except Exception as error:
            raise InvalidArgument(
                f"{place_of(error, path)}: {member}() raised {type(error).__name__}: {error}"
            ) from error
    return made


def describe(batch: Any) -> str:
    """Return a batch's structure in a line."""
    if isinstance(batch, dict):
        return "{" + ", ".join(f"{key}: {describe(part)}" for key, part in batch.items()) + "}"
    if isinstance(batch, tuple):
        return "(" + ", ".join(map(describe, batch)) + ")"
    if isinstance(batch, list):
        return f"list of {len(batch)} × {describe(batch[0]) if batch else 'nothing'}"
    if isinstance(batch, np.ndarray):
        return f"{batch.dtype}{list(batch.shape)}"
    return type(batch).__name__
