"""Imports that wait until a name is asked for.

Installed packages import each other for the few names that a check needs. Some put a lazy module in
their own place, and say their names to type checkers:

``if TYPE_CHECKING: from .model import Model`` stands beside an ``else`` that sets
``sys.modules[__name__]`` to an object which imports a name at its first use. What it makes of texts
and folders is what the imports of the first branch say; they are followed when a name is asked for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Container
from pathlib import Path
from typing import TypeGuard

from hagane.frontends.python.load.places import source_at
from hagane.frontends.python.report.sources import read_source

_SITE = "site-packages"


def lazy_imports(statement: ast.stmt) -> tuple[ast.ImportFrom, ...] | None:
    """Return the imports of names that a statement makes lazily, if it is of this form."""
    if not isinstance(statement, ast.If) or not _asks_type_checking(statement.test):
        return None
    if not any(_replaces_module(node) for one in statement.orelse for node in ast.walk(one)):
        return None
    body = (node for one in statement.body for node in ast.walk(one))
    return tuple(node for node in body if isinstance(node, ast.ImportFrom))


def _asks_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _replaces_module(node: ast.AST) -> bool:
    if not isinstance(node, ast.Assign):
        return False
    return any(ast.unparse(target) == "sys.modules[__name__]" for target in node.targets)


def is_of_other(
    path: Path, statement: ast.stmt, standard: Container[str], knows: Callable[[str], bool]
) -> TypeGuard[ast.Import | ast.ImportFrom]:
    """Whether a statement of an installed package imports another that is read from its source.

    Args:
        path: The file of the statement.
        statement: A statement of it.
        standard: Packages that are imported for real.
        knows: Whether a module is known by its name.
    """
    if _SITE not in path.parts or not isinstance(statement, ast.Import | ast.ImportFrom):
        return False
    if not is_absolute(statement) or any(alias.name == "*" for alias in statement.names):
        return False
    if isinstance(statement, ast.ImportFrom):
        names = [statement.module or ""]
    else:
        names = [alias.name for alias in statement.names]
    own = path.parts[path.parts.index(_SITE) + 1].removesuffix(".py")
    tops = [name.partition(".")[0] for name in names]
    return (
        own not in tops and not any(top in standard for top in tops) and not any(map(knows, names))
    )


def is_absolute(statement: ast.Import | ast.ImportFrom) -> bool:
    """Whether an import says the whole name of a module."""
    return isinstance(statement, ast.Import) or not statement.level


def imported_name(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    """Return the name that a part of an import binds."""
    if alias.asname is not None:
        return alias.asname
    return alias.name.partition(".")[0] if isinstance(statement, ast.Import) else alias.name


def alone(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.stmt:
    """Return the import of one name of several."""
    made: ast.stmt = ast.Import([alias])
    if isinstance(statement, ast.ImportFrom):
        made = ast.ImportFrom(statement.module, [alias], statement.level)
    return ast.copy_location(made, statement)


def source_of(file: str, imported: ast.ImportFrom) -> Path | None:
    """Return the source that a relative import of a package's file means, if there is one."""
    if not imported.level:
        return None
    folder = Path(file).parent
    for _ in range(imported.level - 1):
        folder = folder.parent
    return source_at(folder.joinpath(*(imported.module or "").split(".")))


def may_define(path: Path, name: str) -> bool:
    """Whether a module may have a name by its text: its own, listed, or of an ``import *``."""
    try:
        text = read_source(path)
    except (OSError, ValueError):
        return False
    word = re.escape(name)
    if re.search(rf"^(?:class|def)\s+{word}\b|^{word}\b", text, re.MULTILINE):
        return True
    if re.search(rf"^__all__\s*\+?=[^=]*?[\"']{word}[\"']", text, re.MULTILINE):
        return True
    for line in re.finditer(r"^\s+from (\.+)([\w.]*) import \*", text, re.MULTILINE):
        one = ast.ImportFrom(line[2] or None, [], len(line[1]))
        found = source_of(str(path), one)
        if found is not None and found != path and may_define(found, name):
            return True
    return False


__all__ = [
    "alone",
    "imported_name",
    "is_absolute",
    "is_of_other",
    "lazy_imports",
    "may_define",
    "source_of",
]
