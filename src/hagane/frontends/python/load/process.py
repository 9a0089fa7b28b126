"""What the process of a script holds: its arguments, its modules, where modules are looked for."""

from __future__ import annotations

import sys
from pathlib import Path

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Library,
    ListRef,
    Value,
)


class Process(Core):
    """Answers what ``sys`` tells of a script."""

    def loaded_modules(self) -> Value:
        """Return ``sys.modules``: those of the program, and libraries that are known."""
        known = {name: Library(name) for name in ("numpy", "torch")}
        return self.new_dict({**known, **{one.name: one for one in self.modules.values()}})

    def command_line(self) -> ListRef:
        """Return ``sys.argv``: the script has no arguments."""
        if self.given_words is None:
            files = [module.file for module in self.modules.values()]
            self.given_words = self.new_list(files[:1])
        return self.given_words

    def search_path(self) -> ListRef:
        """Return ``sys.path``: folders that the program adds are looked into."""
        if self.searched is None:
            folders = [str(Path(module.file).parent) for module in self.modules.values()][:1]
            self.searched = self.new_list([*folders, *sys.path[1:]])
        return self.searched

    def added_folders(self) -> list[Path]:
        """Return the folders that the program has added to ``sys.path``."""
        content = None if self.searched is None else self.heap[self.searched]
        known = content if isinstance(content, tuple) else ()
        return [Path(one) for one in known if isinstance(one, str) and one not in sys.path]


__all__ = ["Process"]
