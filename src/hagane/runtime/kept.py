"""Sessions in the cache: a second start of a model infers, lowers and packs nothing.

The parts of a session are kept under the content of the model's file, the settings and hagane's
own source, if the whole model is one native part for all shapes: its plan, in the format of builds
(``native/ready/plan_file.py``), machine code, packed weights, and the session's description of the
model. Weights in files beside the model's count with its content. ``HAGANE_SESSION_CACHE=off``, or
the session's configuration entry ``hagane.cache`` of ``off``, does without.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

import hagane
from hagane.machine import CodeCache, NoCompiler, multiplies_bfloat16
from hagane.native.ready.part import ReadyPart, may_be_ready, plan_of
from hagane.native.ready.rows import TYPES
from hagane.runtime.chosen import can_repeat, level_of, threads_of
from hagane.runtime.options import SessionOptions
from hagane.runtime.values.described import ModelMetadata, NodeArg

if TYPE_CHECKING:
    from mmap import mmap

    from hagane.native.ready.plan_file import PlanArgument
    from hagane.native.run.loaded import Loaded
    from hagane.ops.definition import Array

# A folder of its own in the user's cache. It has room for the weights of large models.
_CACHE = "sessions"
_BYTES = 4 << 30
# Options without effect on compiled code.
_IDLE = frozenset({"log_severity_level", "log_verbosity_level", "logid", "profile_file_prefix"})
# Packages whose source decides about it.
_SOURCES = ("graph", "machine", "native", "ops", "passes", "runtime", "symbolic")
_LIBRARIES = ("onnx", "onnx_ir")
# Begins the entry of a tensor that names a file: StringStringEntryProto(key="location", value=...).
_LOCATION = b"\x0a\x08location\x12"
# Seconds. A file that was just written may be written to again within one tick of its clock.
_SETTLED = 2.0
# More than such a share of the cache is not given to one session.
_SHARE = 2

_FACTS = "session.json"

_live: WeakValueDictionary[str, Loaded | ReadyPart] = WeakValueDictionary()


class Fed(NamedTuple):
    """An input that has to be fed: its name, element type as NumPy calls it, and sizes or None."""

    name: str
    dtype: str
    dims: tuple[int | None, ...]

    def takes(self, array: Array) -> bool:
        """Whether an array is one for this input."""
        return (
            array.dtype.name == self.dtype
            and array.ndim == len(self.dims)
            and all(a is None or a == b for a, b in zip(self.dims, array.shape, strict=True))
        )

    @classmethod
    def of(cls, argument: PlanArgument) -> Fed:
        """Return the input of an entry in a plan."""
        from hagane.native.ready.plan_file import type_name

        sizes = zip(argument.least, argument.most, strict=True)
        dims = tuple(least if least == most else None for least, most in sizes)
        return cls(argument.name, type_name(argument.type), dims)


def _entry(name: str, dtype: str, dims: Sequence[object]) -> PlanArgument:
    """Return the entry of an input or output in a plan; sizes that are no numbers are open."""
    from hagane.native.ready.plan_file import LARGEST, PlanArgument

    least = tuple(dim if isinstance(dim, int) else 0 for dim in dims)
    most = tuple(dim if isinstance(dim, int) else LARGEST for dim in dims)
    return PlanArgument(name, TYPES[dtype], least, most)


class Kept(NamedTuple):
    """The parts of a session for its runs, and the facts of its model.

    Attributes:
        loaded: The part that is the model.
        own: Which of the inputs that have to be fed it reads, in its order.
        order: Which of its outputs are those of the model.
        inputs: The inputs that have to be fed.
        overridable: Initializers that may be fed too.
        arguments: The declaration of each of both.
        outputs: Those of the outputs.
        metadata: The model's description of itself.
        largest: The node whose output takes most memory.
        specializes: Whether shapes that come again and again get programs of their own.
        beside: The files beside the model's in which it has weights, as it names them.
        extension: The library of the engine's module; None if it is not known.
    """

    loaded: Loaded | ReadyPart
    own: tuple[int, ...]
    order: tuple[int, ...]
    inputs: tuple[Fed, ...]
    overridable: tuple[str, ...]
    arguments: tuple[NodeArg, ...]
    outputs: tuple[NodeArg, ...]
    metadata: ModelMetadata
    largest: str
    specializes: bool
    beside: tuple[str, ...] = ()
    extension: Path | None = None


def _sessions() -> CodeCache:
    return CodeCache(_CACHE, limit=_BYTES)


def key_of(path: str, options: SessionOptions) -> str | None:
    """Return the key of a session's compiled parts; None if nothing is kept.

    Args:
        path: The model's file.
        options: Those of the session.
    """
    entries = options.entries
    if "off" in (os.environ.get("HAGANE_SESSION_CACHE", ""), entries.get("hagane.cache", "")):
        return None
    if options.enable_profiling or options.optimized_model_filepath or not can_repeat(options):
        return None
    cache = _sessions()
    if cache.limit == 0:
        return None
    try:
        content = _contents(Path(path), cache)
    except (OSError, NoCompiler):
        return None
    names = SessionOptions.__dataclass_fields__
    chosen = {name: repr(getattr(options, name)) for name in names if name not in _IDLE}
    variables = {k: v for k, v in os.environ.items() if k.startswith("HAGANE_") or k == "CC"}
    variables.pop("HAGANE_CACHE_BYTES", None)
    versions = [hagane.__version__, np.__version__, platform.python_version()]
    level = level_of(options)
    if options.precision != "fp32" and not multiplies_bfloat16(level):
        return None  # each session says so
    machine = [level.name, sorted(level.needs), threads_of(options), platform.machine()]
    return json.dumps(
        ["session", content, chosen, variables, versions, machine, source_state()], sort_keys=True
    )


def _contents(path: Path, cache: CodeCache) -> list[str]:
    """Return the hashes of a model's file, and the names and hashes of files that it names."""
    own, *names = _content(path, cache, _describe_model).split("\n")
    found = [own]
    for name in names:
        if _leads_out(name):
            raise OSError(f"{name!r} lies outside the model's folder")
        found += [name, _content(path.parent / name, cache, _digest)]
    return found


def _leads_out(name: str) -> bool:
    return os.path.isabs(name) or ".." in Path(name).parts


def _content(path: Path, cache: CodeCache, describe: Callable[[Path], str]) -> str:
    """Return a function's value for a file, asked again once the file is not as it was."""
    found = path.stat()
    state = [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    if time.time() - max(found.st_mtime, found.st_ctime) < _SETTLED:
        return describe(path)
    key = json.dumps(["content", describe.__name__, state])

    def make(folder: Path) -> None:
        (folder / "content").write_text(describe(path), encoding="utf-8")

    return (cache.get_folder(key, make) / "content").read_text(encoding="utf-8")


def _describe_model(path: Path) -> str:
    """Return a model's hash and the names of the files beside it that it names, one a line."""
    return "\n".join([_digest(path), *sorted(named_files(path))])


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def source_state() -> str:
    """Return a hash of the state of hagane's source files, as this process first found them.

    Of an installed package the installer's record stands for them: files that are edited where
    they were installed need ``HAGANE_SESSION_CACHE=off``.
    """
    specs = [spec for name in _LIBRARIES if (spec := find_spec(name)) is not None]
    paths = [spec.origin for spec in specs if spec.origin is not None]
    states = [_state(path, os.stat(path)) for path in paths]
    root = os.path.dirname(hagane.__file__)
    # (To look at 500 files takes half of a small model's load.)
    record = os.path.join(f"{root}-{hagane.__version__}.dist-info", "RECORD")
    try:
        states.append(_state(record, os.stat(record)))
    except OSError:
        states += _source_states(root)
    return hashlib.sha256("\n".join(sorted(states)).encode()).hexdigest()


def _source_states(root: str) -> list[str]:
    states = []
    folders = [os.path.join(root, name) for name in _SOURCES]
    while folders:
        with os.scandir(folders.pop()) as found:
            for item in found:
                if item.name == "__pycache__":
                    continue
                if item.is_dir():
                    folders.append(item.path)
                elif not item.name.endswith(".pyc"):
                    states.append(_state(item.path, item.stat()))
    return states


def _state(path: str, status: os.stat_result) -> str:
    return f"{path}:{status.st_size}:{status.st_mtime_ns}"


def named_files(path: Path) -> set[str]:
    """Return the files in which a model's file says that tensors lie.

    The model is searched for, not read: that takes milliseconds. Bytes of a weight that look like
    a name give a file that does not exist, with which nothing is kept.
    """
    from mmap import ACCESS_READ, mmap

    names: set[str] = set()
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return names
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            at = content.find(_LOCATION)
            while at >= 0:
                at += len(_LOCATION)
                name = _text_at(content, at)
                # A line break would part it from the rest; no tool writes one.
                names.add("/" if name is None or "\n" in name else name)
                at = content.find(_LOCATION, at)
    return names


def _text_at(content: mmap, at: int) -> str | None:
    """Return a text of the wire format, with its length before it, or None if it is none."""
    size = 0
    for i, byte in enumerate(content[at : at + 3]):
        size |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            try:
                return content[at + i + 1 : at + i + 1 + size].decode()
            except UnicodeDecodeError:
                return None
    return None


def find(key: str) -> Kept | None:
    """Return the session that is kept under a key, if there is one."""
    found = _sessions().find(key)
    if found is None:
        return None
    try:
        about = json.loads((found.parent / _FACTS).read_text(encoding="utf-8"))
        facts = about["part"]
        if not may_be_ready(facts):
            return None
        plan = plan_of(found.parent)
        loaded = _live.get(key) or ReadyPart(found.parent, plan, facts)
        _live[key] = loaded
        inputs = tuple(map(Fed.of, plan.inputs))
        ((step,), results) = plan.programs[0].steps, plan.programs[0].outputs
        own, order = step.inputs, tuple(map(step.outputs.index, results))
        overridable = tuple(about["overridable"])
        arguments, outputs = (
            tuple(NodeArg(*each) for each in about[kind]) for kind in ("arguments", "outputs")
        )
        metadata = ModelMetadata(**about["metadata"])
        largest, specializes = str(about["largest"]), bool(about["specializes"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # made by another version, or taken away meanwhile
    described = (inputs, overridable, arguments, outputs, metadata)
    extension = Path(facts["extension"])
    return Kept(loaded, own, order, *described, largest, specializes, extension=extension)


def keep(key: str, kept: Kept, path: str) -> None:
    """Keep the session of a file under a key, if it can be, and there is room."""
    if not set(kept.beside) <= named_files(Path(path)):
        return  # it was written in an order that no search finds
    from dataclasses import asdict, astuple

    from hagane.native.run.kept import may_be_kept, write_ready
    from hagane.native.run.loaded import Loaded

    loaded = kept.loaded
    assert isinstance(loaded, Loaded)
    _live[key] = loaded
    cache = _sessions()
    if not may_be_kept(loaded) or len(loaded.packed()) > cache.limit // _SHARE:
        return
    if not {each.dtype for each in kept.inputs} <= TYPES.keys():
        return  # texts that nobody reads
    about = {
        "overridable": kept.overridable,
        "arguments": [astuple(each) for each in kept.arguments],
        "outputs": [astuple(each) for each in kept.outputs],
        "metadata": asdict(kept.metadata),
        "largest": kept.largest,
        "specializes": kept.specializes,
    }

    def write(folder: Path) -> None:
        outputs = [
            _entry(item.name, dtype.name, shape)
            for item, (_, shape, dtype) in zip(
                kept.outputs, (loaded.outputs[i] for i in kept.order), strict=True
            )
        ]
        inputs = [_entry(*each) for each in kept.inputs]
        part = write_ready(loaded, folder, inputs, outputs, kept.own, kept.order)
        written = {**about, "part": part}
        (folder / _FACTS).write_text(json.dumps(written), encoding="utf-8")

    try:
        cache.get_folder(key, write)
    except (OSError, NoCompiler):
        return  # there is no room
