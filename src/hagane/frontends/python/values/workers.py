"""Threads, processes, pools and queues as programs: work is done where it is started, in order.

https://docs.python.org/3/library/concurrency.html
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any


class Thread:
    """``threading.Thread`` and ``multiprocessing.Process``."""

    def __init__(
        self, group: Any = None, target: Callable[..., Any] | None = None, name: Any = None,
        args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, *, daemon: Any = None,
    ):  # fmt: skip
        self._target, self._args, self._kwargs = target, args, {} if kwargs is None else kwargs
        self.name, self.daemon, self.exitcode, self.pid, self.ident = name, daemon, 0, 1, 1

    def run(self) -> None:
        """Do the work."""
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def start(self) -> None:
        """Start the work, which is done at once."""
        self.run()

    def join(self, timeout: Any = None) -> None:
        """Wait for the end of it."""

    def is_alive(self) -> bool:
        """Whether it goes on."""
        return False

    def terminate(self) -> None:
        """End it."""

    def kill(self) -> None:
        """End it."""

    def close(self) -> None:
        """Let go of it."""

    def setDaemon(self, daemonic: Any) -> None:
        """Say whether the program waits for it."""
        self.daemon = daemonic


class Queue:
    """``queue.Queue`` and ``multiprocessing.Queue``."""

    def __init__(self, maxsize: int = 0):
        self.maxsize = maxsize
        self._items: list[Any] = []

    def put(self, item: Any, block: bool = True, timeout: Any = None) -> None:
        """Add an item."""
        self._items.append(item)

    def put_nowait(self, item: Any) -> None:
        """Add an item."""
        self._items.append(item)

    def get(self, block: bool = True, timeout: Any = None) -> Any:
        """Return the first item; what comes later than this program shows is not known."""
        if len(self._items) == 0:
            return pickle.load(None)  # type: ignore[arg-type]
        return self._items.pop(0)

    def get_nowait(self) -> Any:
        """Return the first item."""
        return self.get()

    def qsize(self) -> int:
        """Return the number of items."""
        return len(self._items)

    def empty(self) -> bool:
        """Whether there is no item."""
        return len(self._items) == 0

    def full(self) -> bool:
        """Whether there is no room."""
        return self.maxsize > 0 and len(self._items) >= self.maxsize

    def task_done(self) -> None:
        """Say that an item is done with."""

    def join(self) -> None:
        """Wait until all items are done with."""

    def close(self) -> None:
        """Let go of it."""


class Future:
    """``concurrent.futures.Future`` and results of a pool."""

    def __init__(self, result: Any):
        self._result = result

    def result(self, timeout: Any = None) -> Any:
        """Return what the work gave."""
        return self._result

    def get(self, timeout: Any = None) -> Any:
        """Return what the work gave."""
        return self._result

    def done(self) -> bool:
        """Whether it is done."""
        return True

    def wait(self, timeout: Any = None) -> None:
        """Wait for it."""


class Pool:
    """``concurrent.futures`` executors and ``multiprocessing.Pool``."""

    def __init__(
        self, max_workers: Any = None, initializer: Any = None, initargs: Iterable[Any] = (),
        **settings: Any,
    ):  # fmt: skip
        if callable(initializer):
            initializer(*initargs)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        """Return the result of a call as a future."""
        return Future(fn(*args, **kwargs))

    def map(self, fn: Callable[..., Any], *iterables: Any, **settings: Any) -> list[Any]:
        """Return the results for all items."""
        return list(map(fn, *iterables))

    def starmap(self, func: Callable[..., Any], iterable: Any, chunksize: Any = 1) -> list[Any]:
        """Return the results for all lists of arguments."""
        return [func(*args) for args in iterable]

    def imap(self, func: Callable[..., Any], iterable: Any, chunksize: Any = 1) -> Iterator[Any]:
        """Return an iterator over the results."""
        return iter([func(item) for item in iterable])

    def imap_unordered(self, func: Any, iterable: Any, chunksize: Any = 1) -> Iterator[Any]:
        """Return an iterator over the results."""
        return iter([func(item) for item in iterable])

    def apply(self, func: Callable[..., Any], args: Any = (), kwds: Any = None) -> Any:
        """Return the result of a call."""
        return func(*args, **({} if kwds is None else kwds))

    def apply_async(self, func: Callable[..., Any], args: Any = (), kwds: Any = None) -> Future:
        """Return the result of a call as a future."""
        return Future(func(*args, **({} if kwds is None else kwds)))

    def shutdown(self, wait: Any = True, cancel_futures: Any = False) -> None:
        """Let go of it."""

    def close(self) -> None:
        """Let go of it."""

    def join(self) -> None:
        """Wait for all work."""

    def terminate(self) -> None:
        """End all work."""


def _done(fs: Any, timeout: Any = None) -> Iterator[Any]:
    return iter(list(fs))


# By module and name: those of a context of multiprocessing are made anew each time.
_WORKERS: dict[tuple[str, str], Any] = {
    ("threading", "Thread"): Thread, ("multiprocessing.context", "Process"): Thread,
    ("multiprocessing.context", "Queue"): Queue, ("multiprocessing.context", "SimpleQueue"): Queue,
    ("multiprocessing.context", "JoinableQueue"): Queue, ("multiprocessing.context", "Pool"): Pool,
    ("queue", "Queue"): Queue, ("_queue", "SimpleQueue"): Queue,
    ("concurrent.futures.thread", "ThreadPoolExecutor"): Pool,
    ("concurrent.futures.process", "ProcessPoolExecutor"): Pool,
    ("multiprocessing.pool", "ThreadPool"): Pool, ("multiprocessing.pool", "Pool"): Pool,
    ("concurrent.futures._base", "as_completed"): _done,
}  # fmt: skip


def as_worker(found: Any) -> Any:
    """Return the program that a class or function of these modules stands for, None without one."""
    module, name = getattr(found, "__module__", None), getattr(found, "__name__", None)
    if not isinstance(name, str) or not isinstance(module, str):
        return None
    return _WORKERS.get((module, name))


__all__ = ["as_worker"]
