"""The computation of a loss as a drawing."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

from hagane.errors import InvalidArgument
from hagane.machine.whole_files import write_whole
from hagane.nn.autograd.configuration import config
from hagane.nn.autograd.variable import Variable
from hagane.nn.computational_graph import build_computational_graph
from hagane.training.extension import Extension


def is_graphviz_available() -> bool:
    """Return whether Graphviz, which draws pictures, is installed."""
    return shutil.which("dot") is not None


class DumpGraph(Extension):
    """Writes the computation of an observed variable as text of Graphviz, once.

    Where Graphviz is installed, a picture lies beside it.

    Args:
        root_name: The name of the variable.
        filename: The file in the trainer's folder, by default ``cg.dot``.
        variable_style: Graphviz attributes of variables.
        function_style: Those of functions.
        out_name: Another name of ``filename``.
    """

    observes = True
    default_name = "dump_graph"

    def __init__(
        self,
        root_name: str,
        filename: str | None = None,
        variable_style: dict[str, str] | None = None,
        function_style: dict[str, str] | None = None,
        *,
        out_name: str = "cg.dot",
    ):
        self._root_name = root_name
        self._filename = out_name if filename is None else filename
        self._styles = variable_style, function_style
        self._original = False
        self._done = False

    def initialize(self, trainer: Any) -> None:
        """Let reported variables keep their computations until it is written."""
        if not self._done:
            self._original = bool(config.keep_graph_on_report)
            config.keep_graph_on_report = True

    def trigger(self, trainer: Any) -> bool:
        """Return whether this is the first call."""
        first, self._done = not self._done, True
        return first

    def __call__(self, trainer: Any) -> None:
        """Write it.

        Raises:
            InvalidArgument: Nothing of that name was observed.
            TypeError: It is no variable.
        """
        try:
            if self._root_name not in trainer.observation:
                raise InvalidArgument(
                    f"dump_graph: '{self._root_name}' was not observed; there are "
                    f"{sorted(trainer.observation)}"
                )
            root = trainer.observation[self._root_name]
            if not isinstance(root, Variable):
                raise TypeError(f"root value is not a Variable, got {type(root)}")
            text = build_computational_graph(
                [root], variable_style=self._styles[0], function_style=self._styles[1]
            ).dump()
            path = os.path.join(trainer.out, self._filename)
            write_whole(path, text)
            if is_graphviz_available():
                image = os.path.splitext(path)[0] + ".png"
                subprocess.run(["dot", "-Tpng", path, "-o", image], check=True)
        finally:
            config.keep_graph_on_report = self._original

    def serialize(self, serializer: Any) -> None:
        """Read or write whether it was written."""
        self._original = bool(serializer("_original_flag", self._original))
        self._done = bool(serializer("_flag_called", self._done))


dump_graph = DumpGraph
