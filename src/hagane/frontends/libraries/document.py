"""The names of libraries that the checker knows, as ``docs/check-libraries.md`` lists them.

``python -m hagane.frontends.libraries.document > docs/check-libraries.md`` writes it anew; a test
compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable

from hagane.frontends.libraries.everything import TABLES
from hagane.frontends.libraries.table import Table

_INTRODUCTION = """\
# Libraries that `hagane check` knows

Written by `python -m hagane.frontends.libraries.document`; don't edit. For each of these names the
checker knows the element type and shape of results, and the calls that the library refuses. Tests
run calls of them in the library and through the checker, and compare the types. A missing name
gives a notice and a value of unknown type, never a wrong one.
"""
_NAMES = {"torch": "PyTorch", "einops": "einops", "numpy": "NumPy", "chainer": "Chainer",
          "tqdm": "tqdm", "torchvision": "torchvision", "PIL": "Pillow",
          "sklearn": "scikit-learn", "tiktoken": "tiktoken", "tyro": "tyro", "fire": "fire",
          "hagane": "hagane, beside Chainer's"}  # fmt: skip


def known_names(table: Table) -> set[str]:
    """Return every name of a library that its table knows, without functions in place."""
    methods = {
        f"{cls}.{name}"
        for part in (table.methods, table.attributes)
        for cls, names in part.items()
        for name in names
    }
    found = {*table.functions, *table.layers, *table.constants, *table.transparent, *methods}
    return {name for name in found if not _is_hidden(name)}


def _is_hidden(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last.startswith("_") or last.endswith("_")


def libraries_document() -> str:
    """Return the document."""
    lines = [_INTRODUCTION]
    for root, table in sorted(TABLES.items()):
        lines += [f"## {_NAMES.get(root, root)}: {len(known_names(table))} names", ""]
        for title, names in _parts(table):
            shown = sorted({name for name in names if not _is_hidden(name)})
            if shown:
                lines += [f"**{title}** ({len(shown)}): {_listed(shown)}", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _parts(table: Table) -> Iterable[tuple[str, Iterable[str]]]:
    yield from _functions(table)
    yield "Classes", table.layers
    for cls in sorted({*table.methods, *table.attributes}):
        yield f"Methods of {cls}", table.methods.get(cls, {})
        yield f"Attributes of {cls}", table.attributes.get(cls, {})
    yield "Constants", table.constants
    yield "Decorators and context managers that change no type", table.transparent


def _functions(table: Table) -> Iterable[tuple[str, list[str]]]:
    modules: dict[str, list[str]] = {}
    for name in table.functions:
        module, _, last = name.rpartition(".")
        modules.setdefault(module, []).append(last)
    for module in sorted(modules):
        yield f"Functions of {module}", modules[module]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) + "."


if __name__ == "__main__":
    print(libraries_document(), end="")
