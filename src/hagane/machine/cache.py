"""Compiled code by its sources: private, verified before use, limited in size."""

from __future__ import annotations

import errno
import hashlib
import importlib.machinery
import importlib.util
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hagane.errors import NoCompiler
from hagane.machine.folder import find_place, is_private
from hagane.machine.lock import Lock
from hagane.machine.notices import notice

if TYPE_CHECKING:
    from hagane.machine.compiler import Compiler

Loaded = TypeVar("Loaded")

_LIMIT = 1 << 30
_BUILD = "build-"
# Seconds. An entry in use is not evicted: its process may be between finding and loading it.
_IN_USE = 900.0
# A process counts the entries at its first new one, unless another did so in this time.
_COUNTED = 600.0
# An entry that another process began this long ago will not be finished.
_ABANDONED = 86_400.0

_NO_ROOM = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT}
)
# A compiler's words for the same, in the C locale.
_NO_ROOM_TEXTS = ("No space left on device", "Disk quota exceeded", "File too large", "SIGXFSZ")

# Bytes written to a folder since its entries were last counted.
_written: dict[Path, int] = {}

# Bytes. A larger file, such as a header translated ahead, is read once a process as long as it
# stays as it was; a smaller one each time.
_READ_AGAIN = 1 << 20
# Their checksums by device and inode, and their state when they were read.
_read: dict[tuple[int, int], tuple[tuple[int, ...], str]] = {}


class CodeCache:
    """Compiled code in folders of one file or several, by the hash of its sources.

    An entry is a folder with its files and their checksums. It is written under a name of its
    own and renamed into place, so that several processes may use one cache and a process may end
    at any moment. An entry whose checksums do not fit, or that somebody else may write to, is
    made anew. The entries used least recently are removed once all take more than
    ``HAGANE_CACHE_BYTES``.

    Args:
        name: Subfolder of the user's cache, such as ``native``.
        environment: Where ``XDG_CACHE_HOME``, ``HOME`` and ``HAGANE_CACHE_BYTES`` are looked up;
            that of the process if None.
        clock: Returns the time in seconds since 1970.
        limit: Bytes for all entries if ``HAGANE_CACHE_BYTES`` is unset. More than 1 GiB is given
            only as far as it is no more than a tenth of the disk.
    """

    def __init__(
        self,
        name: str,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        limit: int = _LIMIT,
    ):
        environment = os.environ if environment is None else environment
        self._place = find_place(name, environment)
        self._limit = _limit(environment, self._place.folder, limit)
        self._clock = clock

    @property
    def folder(self) -> Path:
        """The folder that new entries are written to."""
        return self._place.folder

    @property
    def limit(self) -> int:
        """The bytes that all entries may take."""
        return self._limit

    def find(self, key: str) -> Path | None:
        """Return the entry of ``key`` if it is there and whole: its library, or its folder."""
        for folder in self._place.folders:
            found = _verified(folder / _name(key))
            if found is not None:
                with suppress(OSError):
                    os.utime(folder / _name(key), (self._clock(), self._clock()))
                return found
        return None

    def get(self, key: str, make: Callable[[Path], Path]) -> Path:
        """Return the library of ``key``; where it is missing, ``make(folder)`` builds it.

        Args:
            key: Everything that the entry depends on.
            make: Writes a library into the empty folder that it is given and returns its path.

        Raises:
            NoCompiler: It cannot be made, or there is no room for it.
        """
        return self.find(key) or self._make(key, lambda folder: [make(folder)])

    def get_folder(self, key: str, make: Callable[[Path], None]) -> Path:
        """Return the folder of ``key``; where it is missing, ``make(folder)`` fills it.

        Raises:
            NoCompiler: It cannot be made, or there is no room for it.
        """

        def fill(folder: Path) -> list[Path]:
            make(folder)
            return sorted(folder.iterdir())

        return (self.find(key) or self._make(key, fill)).parent

    def load(
        self, key: str, make: Callable[[Path], Path], load: Callable[[Path], Loaded]
    ) -> Loaded:
        """Return the result of ``load`` for the library of ``key``.

        Where it cannot be loaded from the cache, as from a file system that forbids to run code,
        it is made anew in a temporary folder.

        Raises:
            NoCompiler: It cannot be made or loaded.
        """
        path = self.get(key, make)
        try:
            return load(path)
        except (OSError, ImportError) as error:
            _discard(path.parent)
            notice(f"compiled code cannot be loaded from '{self.folder}': {error}")
        path = self._build(self._place.temporary(), key, lambda folder: [make(folder)])
        try:
            return load(path)
        except (OSError, ImportError) as error:
            _discard(path.parent)
            raise NoCompiler(
                f"what the compiler made cannot be loaded: {error}; let CC name another compiler"
            ) from error

    def _make(self, key: str, fill: Callable[[Path], Sequence[Path]]) -> Path:
        folder: Path | None = None
        try:
            folder = self.folder
            return self._build(folder, key, fill)
        except OSError as error:
            if not _is_full(error):
                raise
            if folder is None or folder != self._place.kept:
                raise _no_room(folder, error) from error
            notice(
                f"compiled code cannot be kept in '{folder}': {_reason(error)}; it goes to a "
                "temporary folder and is compiled anew by each process; make room, lower "
                "HAGANE_CACHE_BYTES, or let XDG_CACHE_HOME name another folder"
            )
        try:
            folder = None
            folder = self._place.temporary()
            return self._build(folder, key, fill)
        except OSError as error:
            if not _is_full(error):
                raise
            raise _no_room(folder, error) from error

    def _build(self, folder: Path, key: str, fill: Callable[[Path], Sequence[Path]]) -> Path:
        import tempfile  # what is found in the cache needs none of these

        with tempfile.TemporaryDirectory(
            dir=folder, prefix=_BUILD, ignore_cleanup_errors=True
        ) as build:
            entry = Path(build) / "entry"
            made = fill(Path(build))
            entry.mkdir(mode=0o700)
            for path in made:
                os.replace(path, entry / path.name)
                (entry / path.name).chmod(0o600)
            lines = [_stated(entry / path.name) for path in made]
            (entry / made[0].name).with_suffix(".sha256").write_text(
                "".join(lines), encoding="utf-8"
            )
            size = _bytes_of(entry)
            found = _put(entry, folder / _name(key))
        self._limit_size(folder, size)
        return found

    def _limit_size(self, folder: Path, added: int) -> None:
        """Count the entries now and then, and remove those used least recently if need be."""
        if folder != self._place.kept:
            return
        now, mark = self._clock(), folder.with_name(f"{folder.name}.counted")
        known = _written.get(folder)
        if known is None:
            known = 0 if _is_recent(mark, now) else self._limit
        _written[folder] = known + added
        if known + added > self._limit // 64:
            _written[folder] = 0
            evict(folder, self._limit, now)
            with suppress(OSError):
                mark.touch(mode=0o600)
                os.utime(mark, (now, now))


def _is_recent(mark: Path, now: float) -> bool:
    """Whether some process counted the entries lately: that takes a quarter of a second."""
    with suppress(OSError):
        return 0 <= now - mark.lstat().st_mtime < _COUNTED
    return False


def is_whole(entry: Path) -> bool:
    """Whether an entry is there, as it was written, and private."""
    return _verified(entry) is not None


def evict(folder: Path, limit: int, now: float) -> None:
    """Remove entries, least recently used first, until they take ``limit`` bytes at most.

    Entries used within the last quarter of an hour stay.

    Args:
        folder: Of a cache.
        limit: Bytes.
        now: Seconds since 1970.
    """
    entries: list[tuple[float, int, Path]] = []
    for path in folder.iterdir():
        with suppress(OSError):
            used = path.lstat().st_mtime
            if not path.name.startswith(_BUILD):
                entries.append((used, _bytes_of(path), path))
            elif now - used > _ABANDONED:
                _discard(path)
    total = sum(size for _, size, _ in entries)
    for used, size, path in sorted(entries):
        if total <= limit or now - used < _IN_USE:
            break
        _discard(path)
        total -= size


def _limit(environment: Mapping[str, str], folder: Path, wanted: int) -> int:
    stated = environment.get("HAGANE_CACHE_BYTES", "")
    if stated.isascii() and stated.isdigit():
        return int(stated)
    if wanted > _LIMIT:
        wanted = max(_LIMIT, min(wanted, _disk_bytes(folder) // 10))
    if stated:
        notice(
            f"HAGANE_CACHE_BYTES: expected a whole number of bytes, got '{stated}'; it is {wanted}"
        )
    return wanted


def _disk_bytes(folder: Path) -> int:
    """The size of the disk that a folder, which may not be there yet, will be on."""
    for place in (folder, *folder.parents):
        with suppress(OSError):
            found = os.statvfs(place)
            return found.f_blocks * found.f_frsize
    return 0


def _name(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _checksum(path: Path) -> str:
    found = path.lstat()
    place = found.st_dev, found.st_ino
    # A write to a file changes the time of its last change, which nobody can set.
    now = found.st_size, found.st_mtime_ns, found.st_ctime_ns
    if place in _read and _read[place][0] == now:
        return _read[place][1]
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if found.st_size > _READ_AGAIN:
        _read[place] = now, checksum
    return checksum


def _stated(path: Path) -> str:
    """Return a manifest's entry of a file."""
    checksum = _checksum(path)
    return f"{checksum}  {_state(path)}  {path.name}\n"


def _state(path: Path) -> str:
    """Return a stamp that changes whenever a large file is written to; '?' for small ones.

    The time of the last change of an inode cannot be set, so a large file that is still in the
    state in which its checksum was computed is not read again.
    """
    found = path.lstat()
    if found.st_size <= _READ_AGAIN:
        return "?"
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def _bytes_of(path: Path) -> int:
    if not stat.S_ISDIR(path.lstat().st_mode):
        return path.lstat().st_size
    return sum(_bytes_of(child) for child in path.iterdir())


def _verified(entry: Path) -> Path | None:
    """Return the first file of an entry if all its files are there, whole and private."""
    try:
        if not is_private(entry, stat.S_IFDIR):
            return None
        present = set(entry.iterdir())
        (manifest,) = (path for path in present if path.suffix == ".sha256")
        lines = manifest.read_text(encoding="utf-8").splitlines()
        stated = {entry / name: known for *known, name in (x.split("  ", 2) for x in lines)}
        if present != {manifest, *stated}:
            return None
        for path, (checksum, state) in stated.items():
            if not is_private(path, stat.S_IFREG):
                return None
            if (state == "?" or state != _state(path)) and _checksum(path) != checksum:
                return None
        return next(iter(stated), None)
    except (OSError, ValueError):
        return None


def _put(entry: Path, place: Path) -> Path:
    """Rename a finished entry into place and return its first file."""
    for _ in range(8):
        try:
            os.rename(entry, place)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            found = _verified(place)
            if found is not None:
                return found  # another process was faster
            _discard(place)
        else:
            break
    found = _verified(place)
    if found is None:
        # Evicted or changed by another process since; a folder of our own is quieter.
        raise OSError(errno.ENOENT, "the entry did not stay as it was written", str(place))
    return found


def _discard(path: Path) -> None:
    """Remove an entry at once, so that nobody finds half of it."""
    import secrets
    import shutil

    trash = path.with_name(f"{_BUILD}{secrets.token_hex(8)}")
    with suppress(OSError):
        os.rename(path, trash)
        if stat.S_ISDIR(trash.lstat().st_mode):
            shutil.rmtree(trash, ignore_errors=True)
        else:
            trash.unlink()


def _is_full(error: OSError) -> bool:
    return error.errno in _NO_ROOM or any(text in str(error) for text in _NO_ROOM_TEXTS)


def _reason(error: OSError) -> str:
    """Return the line of an error that names the full disk, or its first."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return next((line for line in lines if any(text in line for text in _NO_ROOM_TEXTS)), lines[0])


def _no_room(folder: Path | None, error: OSError) -> NoCompiler:
    where = "any temporary folder" if folder is None else f"'{folder}'"
    return NoCompiler(
        f"there is no room for compiled code in {where}: {_reason(error)}; make room, or let "
        "XDG_CACHE_HOME and TMPDIR name folders that have it"
    )


def make_module(
    kept: CodeCache,
    name: str,
    source: str,
    compiler: Compiler,
    flags: Sequence[str],
    also: str = "",
) -> Any:
    """Return a Python module in C, compiled once: for calls that ctypes lacks, or makes slowly.

    Args:
        kept: The cache of its code.
        name: The module is ``hagane_`` and this.
        source: Its text.
        compiler: The compiler.
        flags: Its flags, folders of headers included.
        also: A text that changes where the code must be another.

    Raises:
        NoCompiler: The compiler refuses the source, or it cannot be loaded.
    """
    key = "\0".join((source, also, *flags, *compiler.command, compiler.version))

    def build(folder: Path) -> Path:
        written, library = folder / f"{name}.c", folder / f"{name}.so"
        written.write_text(source, encoding="utf-8")
        compiler.build([written], library, flags)
        return library

    return kept.load(key, build, lambda path: open_module(path, name))


@cache
def open_module(path: Path, name: str) -> Any:
    """Return the module of a library; it is loaded once.

    Raises:
        ImportError: It cannot be loaded.
    """
    loader = importlib.machinery.ExtensionFileLoader(f"hagane_{name}", str(path))
    spec = importlib.util.spec_from_loader(f"hagane_{name}", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def load_module(
    name: str, source: Callable[[], str], include: tuple[str, ...] = (), also: str = ""
) -> Any | None:
    """Return a module in C, or None where there can be none: Python's headers may be missing.

    If they are there and it cannot be compiled or loaded, a notice says why.

    Args:
        name: The module is ``hagane_`` and this.
        source: Returns its text.
        include: Folders of headers besides Python's, which come before it.
        also: A text that changes where the code must be another.
    """
    import sysconfig

    from hagane.machine.compiler import find_compiler

    try:
        compiler = find_compiler()
    except NoCompiler:
        return None  # said of the model, which cannot be compiled either
    python = sysconfig.get_paths()["include"]
    if not (Path(python) / "Python.h").exists():
        return None
    # Debian keeps the headers of its own, older NumPy among those of Python.
    folders = (*include, python)
    with _making.setdefault(name, Lock()):
        return _module(name, source, compiler, folders, also)


_making: dict[str, Lock] = {}


@cache
def _module(
    name: str, source: Callable[[], str], compiler: Compiler, include: tuple[str, ...], also: str
) -> Any | None:
    """Return the module or None; after one failure it is not tried again in this process."""
    from hagane.machine.compiler import extra_flags

    folders = (f"-I{folder}" for folder in include)
    flags = ("-O2", "-std=gnu11", "-fPIC", "-w", *folders, *extra_flags())
    try:
        return make_module(CodeCache("native"), name, source(), compiler, flags, also)
    except (ImportError, OSError) as error:
        notice(f"calls take longer than they could: the module '{name}' cannot be made: {error}")
        return None
