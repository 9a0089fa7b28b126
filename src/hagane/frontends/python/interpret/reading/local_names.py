"""The names that belong to a function: those that something in its body sets."""

from __future__ import annotations

import ast
from functools import lru_cache

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@lru_cache(maxsize=1024)
def local_names(function: _Function) -> frozenset[str]:
    """Return the names that a function sets, its parameters included.

    Python looks for them in the function alone, wherever they are read. Names that the function
    declares ``global`` or ``nonlocal`` are none of them.
    """
    formal = function.args
    parameters = [*formal.posonlyargs, *formal.args, *formal.kwonlyargs]
    names = {one.arg for one in (*parameters, formal.vararg, formal.kwarg) if one is not None}
    outer: set[str] = set()
    queue: list[ast.AST] = []
    if isinstance(function.body, list):
        queue += function.body
    else:
        queue.append(function.body)
    while queue:
        node = queue.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
                queue += node.decorator_list
                continue
            case ast.Lambda():
                continue
            case ast.Global(names=declared) | ast.Nonlocal(names=declared):
                outer.update(declared)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names.update((a.asname or a.name).partition(".")[0] for a in imported)
            case ast.ExceptHandler(name=str() as name) | ast.MatchMapping(rest=str() as name):
                names.add(name)
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                names.add(name)
        if isinstance(node, _COMPREHENSIONS):  # whose own names are seen in them alone
            inner = [each for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
            names.update(each.target.id for each in inner)
            continue
        queue += ast.iter_child_nodes(node)
    return frozenset(names - outer)


__all__ = ["local_names"]
