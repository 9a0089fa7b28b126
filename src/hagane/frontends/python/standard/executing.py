"""Programs in texts: ``exec`` and ``eval`` of texts that are known, and of files of source."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.report.sources import read_source
from hagane.frontends.python.values.values import (
    DictRef,
    Host,
    Outside,
    Unknown,
    Value,
)


@dataclass(frozen=True, slots=True, eq=False)
class FileText(Outside):
    """The content of a file that the program opens by a name that is known."""

    path: str = ""


class Executing(Core):
    """Runs programs in texts, in the scope that runs them."""

    def open_file(self, path: Value) -> Unknown:
        """Return the content of a file."""
        content = "the content of a file"
        if not isinstance(path, str) or self.emit.builds:
            return self.outside(content)
        return FileText(content, told=True, path=path)

    def _call_compile(self, source: Value, filename: Value = "", mode: Value = "exec") -> Value:
        if isinstance(source, str) and isinstance(mode, str):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    compile(source, "<text>", mode, ast.PyCF_ONLY_AST, dont_inherit=True)
            except SyntaxError as error:
                told = f"SyntaxError: {error.msg} in the text that is compiled"
                raise CheckError("syntax", told) from None
        return source if isinstance(source, str | Unknown) else self._not_understood("compile")

    def _call_eval(self, source: Value, globals: Value = None, locals: Value = None) -> Value:
        tree = self._parsed(source, "eval", globals, locals)
        if not isinstance(tree, ast.Expression):
            return self._not_understood("eval")
        return self.evaluate(tree.body)

    def _call_exec(self, source: Value, globals: Value = None, locals: Value = None) -> Value:
        frame = self.frame
        assert frame is not None
        tree = self._parsed(source, "exec", globals, locals)
        if not isinstance(tree, ast.Module) or frame.key != frame.module.key:
            self.from_outside.ran_texts.add(frame.module.file)
            return self._not_understood("exec")
        with self._at(source):
            for statement in tree.body:
                if not self.dead:
                    self.execute([statement])
        return None

    def _parsed(
        self, source: Value, mode: str, globals: Value, locals: Value
    ) -> ast.Module | ast.Expression | None:
        """Return the program in a text; None where that is not known, or has a scope of its own."""
        if isinstance(source, Host) and isinstance(source.object, str):
            source = source.object
        text = self._text_of(source)
        assert self.frame is not None
        top = self.frame.key == self.frame.module.key
        own = locals is None and (globals is None or (top and globals == DictRef(self.frame.key)))
        if text is None or self.emit.builds or not own:
            return None
        try:
            if mode == "eval":
                tree: ast.Module | ast.Expression = ast.parse(text.strip(), mode="eval")
            else:
                tree = ast.parse(text)
        except SyntaxError as error:
            told = f"SyntaxError: {error.msg} in the text that {mode} runs"
            raise CheckError("syntax", told) from None
        if isinstance(source, str):
            self._place_here(tree)
        return tree

    @staticmethod
    def _text_of(source: Value) -> str | None:
        if isinstance(source, FileText) and source.path.endswith(".py"):
            try:
                return read_source(Path(source.path))
            except (OSError, ValueError):
                return None
        return source if isinstance(source, str) else None

    def _place_here(self, tree: ast.AST) -> None:
        """Let a program in a text lie where the call stands that runs it."""
        assert self.frame is not None
        here = self.collector.nodes[self.frame.key]
        for node in ast.walk(tree):
            if hasattr(node, "lineno"):
                ast.copy_location(node, here)

    @contextmanager
    def _at(self, source: Value) -> Iterator[None]:
        """Let statements run in the module's scope, and lie in the file that they are of."""
        outer = self.frame
        assert outer is not None
        file = source.path if isinstance(source, FileText) else outer.file
        before = self.collector.nodes[outer.key]
        self.frame = replace(outer, file=file)
        try:
            yield
        finally:
            self.frame = outer
            self.collector.nodes[outer.key] = before

    def _not_understood(self, name: str) -> Value:
        return self.lost(
            f"'{name}' of a program that is not known; import the module, or name the class in a "
            "dictionary"
        )


__all__ = ["Executing", "FileText"]
