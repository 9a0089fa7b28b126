"""Machine code as text: by objdump from the compiled library, else as the compiler writes it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hagane.errors import InvalidArgument
from hagane.machine import Level, find_compiler
from hagane.machine.compiler import extra_flags
from hagane.native.c import c_source
from hagane.native.kernels.kernel import Kernel
from hagane.native.run.engine import HEADER, KERNEL_FLAGS, compile_kernels, kernel_name

_SECONDS = 120
_LINE = re.compile(r"^\s*([0-9a-f]+):\s*(\S.*)$")
_TARGET = r"\b[0-9a-f]+ (?=<{}\b)"


def disassemble(
    kernels: Sequence[Kernel], level: Level, functions: Mapping[str, str]
) -> dict[str, str]:
    """Return the instructions of kernels, by the names that they are found by.

    Args:
        kernels: With code; compiled unless they are in the cache.
        level: The instructions that they were generated for.
        functions: The names of their C functions; see ``function_names``.

    Raises:
        NoCompiler: There is no C compiler, or it failed.
    """
    names = {kernel_name(kernel.code): kernel for kernel in kernels}
    tool = shutil.which("objdump")
    if tool is None:
        return {name: _translated(kernel, level) for name, kernel in names.items()}
    path = compile_kernels(list(kernels), level).path
    return {name: _dumped(tool, path, functions[name]) for name in names}


def _dumped(tool: str, library: Path, function: str) -> str:
    command = [tool, "-d", "--no-show-raw-insn", f"--disassemble={function}", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    code = [found.groups() for found in map(_LINE.match, done.stdout.splitlines()) if found]
    if not code:
        raise InvalidArgument(f"{tool} finds no function '{function}' in '{library}'")
    start = int(code[0][0], 16)
    # Jumps name their targets by the distance from the function's start, and so do the lines.
    lines = [
        f"{int(address, 16) - start:6x}  {re.sub(_TARGET.format(function), '', instruction)}"
        for address, instruction in code
    ]
    return "\n".join([f"{function}:", *lines])


def _translated(kernel: Kernel, level: Level) -> str:
    """Return the assembly that the compiler writes, with its directives."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "kernel.c", Path(folder) / "kernel.s"
        text = c_source(*HEADER) + kernel.code.replace("KERNEL", kernel.name)
        source.write_text(text, encoding="utf-8")
        find_compiler().translate(source, made, (*KERNEL_FLAGS, *level.flags, *extra_flags()))
        return made.read_text(encoding="utf-8")
