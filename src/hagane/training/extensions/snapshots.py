"""Snapshots that a trainer takes of itself."""

from __future__ import annotations

import os
import re
import string
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.nn.serializers.archive import SnapshotError, difference
from hagane.nn.serializers.npz import load_npz, save_npz, serialize
from hagane.training.errors import Diverged
from hagane.training.expected import fail, need, need_callable, need_number
from hagane.training.extension import Extension
from hagane.training.extensions.snapshot_writers import SimpleWriter, Writer

_SHOWN = 12  # of the values that a model lacks
FILENAME = "snapshot_iter_{.updater.iteration}"


def find_snapshots(pattern: str, folder: str) -> list[str]:
    """Return the names of files in a folder that a format string could have made, oldest first.

    Files of one time are in the order of the numbers in their names.
    """
    parts = (
        re.escape(text) + ("" if field is None else ".+")
        for text, field, _, _ in string.Formatter().parse(pattern)
    )
    fits = re.compile("".join(parts))
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if fits.fullmatch(entry.name) and entry.is_file():
                numbers = [int(text) for text in re.findall(r"\d+", entry.name)]
                found.append((entry.stat().st_mtime_ns, numbers, entry.name))
    return [name for _, _, name in sorted(found)]


def delete_old(pattern: str, folder: str, kept: int) -> None:
    """Delete all snapshots but the newest ones."""
    for name in find_snapshots(pattern, folder)[:-kept]:
        os.remove(os.path.join(folder, name))


class Snapshot(Extension):
    """Saves an object in the trainer's folder; made by ``snapshot`` and ``snapshot_object``."""

    trigger = (1, "epoch")
    priority = -100
    # Under which Chainer's snapshots have the state of its trigger.
    default_name = "_Snapshot"

    def __init__(
        self,
        target: Any,
        condition: Callable[[], bool] | None,
        writer: Any,
        filename: Any,
        snapshot_on_error: bool,
        n_retains: int,
        autoload: bool,
    ):
        if target is not None:
            need("snapshot: target", target, "an object that can be saved", "serialize")
        if not isinstance(filename, str) and not callable(filename):
            raise fail("snapshot: filename", "a format string or a function", filename)
        need_callable("snapshot: condition", condition, optional=True)
        need_callable("snapshot: writer", writer)
        need_number("snapshot: n_retains", n_retains)
        self.target = target
        self.condition = condition
        self.writer = writer
        self.filename = filename
        self.snapshot_on_error = snapshot_on_error
        self.n_retains = n_retains
        self.autoload = autoload

    def initialize(self, trainer: Any) -> None:
        """Load the newest snapshot, if that is asked for, and begin to delete old ones."""
        if self.autoload and isinstance(self.filename, str):
            self.load(trainer)
        retains = self.n_retains > 0 and isinstance(self.filename, str)
        if retains and isinstance(self.writer, Writer):
            # (A writer in another process takes the hook with it.)
            hook = partial(delete_old, self.filename, trainer.out, self.n_retains)
            self.writer.add_cleanup_hook(hook)

    def load(self, trainer: Any) -> str | None:
        """Load the newest snapshot that is whole, and return its path; None if there is none.

        Raises:
            SnapshotError: It is one of another object.
        """
        for name in reversed(find_snapshots(self.filename, trainer.out)):
            path = os.path.join(trainer.out, name)
            if is_whole(path):
                if self.target is None:
                    _load(path, trainer)
                else:
                    load_npz(path, self.target)
                return path
            warnings.warn(f"{path} is damaged; an older snapshot is looked for", stacklevel=3)
        return None

    def __call__(self, trainer: Any) -> None:
        """Save the object, if the condition holds."""
        if self.condition is None or self.condition():
            self.save(trainer)

    def save(self, trainer: Any) -> None:
        """Save the object."""
        values = serialize(trainer if self.target is None else self.target)
        make = self.filename if callable(self.filename) else self.filename.format
        self.writer(make(trainer), trainer.out, values)

    def on_error(self, trainer: Any, exc: Exception, tb: Any) -> None:
        """Save the object, if that is asked for."""
        if self.snapshot_on_error:
            self.save(trainer)

    def finalize(self) -> None:
        """Wait until all snapshots are written."""
        if hasattr(self.writer, "finalize"):
            self.writer.finalize()


def save_at_error(trainer: Any, error: Exception, extensions: Iterable[Any]) -> None:
    """Save a trainer when an extension raised: after a whole update, which is not lost then.

    Its first snapshot does, unless one did so by itself, or it is what raised. Parameters that
    diverged are not saved, as a run would go on from them.
    """
    notes = [note for note in getattr(error, "__notes__", ()) if note.startswith("in extension ")]
    own = [one for one in extensions if isinstance(one, Snapshot) and one.target is None]
    raised = any(note.startswith(f"in extension '{one.name}'") for note in notes for one in own)
    saved = any(one.snapshot_on_error for one in own)
    if notes and own and not raised and not saved and not isinstance(error, Diverged):
        own[0](trainer)


def is_whole(path: str) -> bool:
    """Return whether an npz file can be read to its end, its checksums included."""
    try:
        with zipfile.ZipFile(path) as opened:
            return opened.testzip() is None
    except (zipfile.BadZipFile, OSError, EOFError, ValueError):
        return False


def _load(path: Any, trainer: Any) -> None:
    """Load a snapshot into a trainer; warn of what its models and optimizers lack.

    Extensions that the program has gained since begin anew where their state is none of training.
    """
    try:
        with trainer.begin_anew(_gained(path, trainer.extensions)):
            load_npz(path, trainer)
    except SnapshotError as error:
        error.add_note(
            f"{path} was to be gone on from: take out of the program what it lacks, train anew in "
            "another folder, or call load_npz with strict=False before trainer.run()"
        )
        raise
    with np.load(path) as file:
        names = [name for name in file.files if name.startswith("updater/")]
    differs = difference(trainer.updater, names, "updater/", exact=True)
    lines = [line for line in (differs or "").split("\n") if line.startswith("  not in")]
    if lines:
        more = [f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        text = "\n".join([f"{path} is of another model or optimizer:", *lines[:_SHOWN], *more])
        warnings.warn(f"{text}\nthe rest of it was loaded", stacklevel=4)


def _gained(path: Any, extensions: Mapping[str, Any]) -> list[str]:
    """Return the extensions of which a snapshot holds nothing that training needs.

    These observe, or have no state but that of their trigger.
    """
    try:
        with zipfile.ZipFile(path) as opened:
            held = opened.namelist()
    except (zipfile.BadZipFile, OSError):
        return []  # load_npz tells why
    parts = ("extensions", "extension_triggers")
    return [
        name
        for name, extension in extensions.items()
        if not any(one.startswith(f"{part}/{name}/") for one in held for part in parts)
        and (
            getattr(extension, "observes", False)
            or not hasattr(extension, "serialize")
            or difference(extension, (), "") is None
        )
    ]


def load_newest(trainer: Any, resume: str, extensions: Iterable[Any]) -> str | None:
    """Load a snapshot into a trainer.

    Args:
        trainer: The trainer.
        resume: A path, or ``auto`` for the newest that the trainer's snapshot extension made.
        extensions: The trainer's extensions.

    Returns:
        The path; None if there is no snapshot yet.

    Raises:
        InvalidArgument: ``auto`` without a snapshot extension of the trainer.
    """
    if resume != "auto":
        _load(resume, trainer)
        return resume
    for extension in extensions:
        own = isinstance(extension, Snapshot) and extension.target is None
        if own and isinstance(extension.filename, str):
            path: str | None = extension.load(trainer)
            return path
    raise InvalidArgument(
        "run: resume='auto' needs the extension that takes snapshots: "
        "trainer.extend(extensions.snapshot())"
    )


def snapshot(
    savefun: Callable[..., None] | None = None,
    filename: Any = FILENAME,
    *,
    target: Any = None,
    condition: Callable[[], bool] | None = None,
    writer: Any = None,
    snapshot_on_error: bool = False,
    n_retains: int = -1,
    autoload: bool = False,
    num_retain: int | None = None,
) -> Snapshot:
    """Return an extension that saves the trainer, by default once an epoch.

    A snapshot is written beside its place and moved there when it is whole.

    Args:
        savefun: Called with a path and the values by path, by default ``save_npz``.
        filename: A format string for the trainer, or a function of it.
        target: The object to save instead of the trainer.
        condition: Called before each snapshot; returns whether to take it.
        writer: Writes the values; see ``extensions.snapshot_writers``.
        snapshot_on_error: Save when an update or an extension raised.
        n_retains: The number of snapshots kept; all if not positive.
        autoload: Load the newest snapshot in the trainer's folder at the start of a run.
        num_retain: The former name of ``n_retains``.

    Raises:
        TypeError: Both ``savefun`` and ``writer`` are given.
    """
    if num_retain is not None:
        warnings.warn(
            "Argument `num_retain` is deprecated. Please use `n_retains` instead",
            DeprecationWarning,
            stacklevel=2,
        )
        n_retains = num_retain
    if savefun is not None and writer is not None:
        raise TypeError("savefun and writer arguments cannot be specified together.")
    need_callable("snapshot: savefun", savefun, optional=True)
    if writer is None:
        writer = SimpleWriter(savefun=save_npz if savefun is None else savefun)
    return Snapshot(target, condition, writer, filename, snapshot_on_error, n_retains, autoload)


def snapshot_object(
    target: Any, filename: Any, savefun: Callable[..., None] | None = None, **options: Any
) -> Snapshot:
    """Return an extension that saves an object, by default once an epoch.

    Args:
        target: The object.
        filename: A format string for the trainer, or a function of it.
        savefun: Called with a path and the values by path.
        options: As for ``snapshot``.
    """
    return snapshot(savefun, filename, target=target, **options)
