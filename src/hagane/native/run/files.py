"""Compiled parts in files: written by one process, loaded by others that need no compiler.

A file is a ZIP archive of ``part.json`` (tables, formulas, recipes), the machine code of kernels and
engine, and the arrays that weights are packed from; ``checksums.json`` holds SHA-256 of each. The
machine code runs as it is: load files only from sources whose programs you would run.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hagane.errors import InvalidModel, NoSuchFile, UnsupportedModel
from hagane.machine import CodeCache, cpu_features
from hagane.machine.whole_files import written_whole
from hagane.native.run.codec import Reader, Writer
from hagane.native.run.compiled import Compiled, Source, Weight

_KIND = "hagane compiled part"
# Changes whenever the tables of this file or those of the engine mean something else.
_VERSION = 3
_CHECKSUMS = "checksums.json"


def save_compiled(compiled: Compiled, path: str | os.PathLike[str]) -> None:
    """Write a compiled part into a file, whole or not at all.

    Raises:
        InvalidArgument: It belongs to this process: it calls oneDNN.
        OSError: It cannot be written, or its machine code is not in the cache any more.
    """
    writer = Writer()
    part = {
        "threads": compiled.threads,
        "kernels": writer.write(compiled.kernels),
        "inputs": writer.write(compiled.inputs),
        "outputs": writer.write(compiled.outputs),
        "equal": writer.write(compiled.equal),
        "weights": [writer.write((w.buffer, w.offset, w.packing)) for w in compiled.weights],
        "weight_bytes": compiled.weight_bytes,
        "sources": [
            [each.name, each.array.dtype.name, each.array.shape, each.may_change]
            for each in compiled.sources
        ],
    }
    tables = {
        "kind": _KIND,
        "version": _VERSION,
        "machine": platform.machine(),
        "needs": sorted(compiled.needs),
        "buffers": writer.table(),
        "part": part,
    }
    members = {
        "part.json": json.dumps(tables).encode(),
        "kernels.so": compiled.library.read_bytes(),
        "engine.so": compiled.engine.read_bytes(),
    }
    with written_whole(path) as begun, zipfile.ZipFile(begun, "w") as archive:
        checksums: dict[str, str] = {}

        def add(member: str, content: bytes) -> None:
            checksums[member] = hashlib.sha256(content).hexdigest()
            archive.writestr(member, content)

        for member, content in members.items():
            add(member, content)
        for number, source in enumerate(compiled.sources):
            add(f"sources/{number}", np.ascontiguousarray(source.array).tobytes())
        archive.writestr(_CHECKSUMS, json.dumps(checksums))


def load_compiled(path: str | os.PathLike[str]) -> Compiled:
    """Return the compiled part of a file; it is verified, and nothing is compiled.

    Raises:
        NoSuchFile: There is no such file.
        InvalidModel: It is none of ours, of another version, or damaged.
        UnsupportedModel: It is for other processors.
    """
    path = Path(path)
    try:
        members = _members(path)
        tables = json.loads(members["part.json"])
        _check(path, tables)
        return _compiled(tables, members)
    except FileNotFoundError:
        raise NoSuchFile(f"there is no file '{path}'") from None
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, IndexError, EOFError) as error:
        if isinstance(error, InvalidModel):
            raise
        raise InvalidModel(
            f"'{path}': expected a compiled part as save_compiled writes it, "
            f"got something else or a damaged one ({type(error).__name__}: {error})"
        ) from error


def _members(path: Path) -> dict[str, bytes]:
    """Return the members of an archive, whose checksums are right."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    stated = json.loads(members.pop(_CHECKSUMS))
    if stated.keys() != members.keys():
        raise InvalidModel(f"'{path}' is damaged: it lacks a part, or has one too many")
    for name, content in members.items():
        if hashlib.sha256(content).hexdigest() != stated[name]:
            raise InvalidModel(f"'{path}' is damaged: the checksum of '{name}' is another one")
    return members


def _check(path: Path, tables: Mapping[str, Any]) -> None:
    if tables["kind"] != _KIND:
        raise InvalidModel(f"'{path}': expected a {_KIND}, got {tables['kind']!r}")
    if tables["version"] != _VERSION:
        raise InvalidModel(
            f"'{path}': expected version {_VERSION}, got {tables['version']!r}; "
            "compile the part again with this version of hagane"
        )
    lacking = sorted(frozenset(tables["needs"]) - cpu_features())
    if tables["machine"] != platform.machine() or lacking:
        have = f"this machine is {platform.machine()}" + (
            f" without {', '.join(lacking)}" if lacking else ""
        )
        raise UnsupportedModel(
            [f"'{path}': machine code for {tables['machine']}; {have}: compile the part for it"]
        )


def _compiled(tables: Mapping[str, Any], members: Mapping[str, bytes]) -> Compiled:
    reader = Reader(tables["buffers"])
    part = tables["part"]
    sources = [
        Source(name, _array(members[f"sources/{number}"], dtype, shape), bool(may_change))
        for number, (name, dtype, shape, may_change) in enumerate(part["sources"])
    ]
    return Compiled(
        frozenset(tables["needs"]),
        int(part["threads"]),
        reader.read(part["kernels"]),
        reader.read(part["inputs"]),
        reader.read(part["outputs"]),
        reader.read(part["equal"]),
        tuple(Weight(*reader.read(weight)) for weight in part["weights"]),
        int(part["weight_bytes"]),
        tuple(sources),
        _library(members["kernels.so"], "kernels.so"),
        _library(members["engine.so"], "engine.so"),
    )


def _array(content: bytes, dtype: str, shape: list[int]) -> np.ndarray:
    return np.frombuffer(content, np.dtype(dtype)).reshape(shape)


def _library(code: bytes, name: str) -> Path:
    """Return a library's place in the cache of compiled code, from where it can be mapped."""

    def make(folder: Path) -> Path:
        (folder / name).write_bytes(code)
        return folder / name

    return CodeCache("native").get(f"file\0{hashlib.sha256(code).hexdigest()}", make)
