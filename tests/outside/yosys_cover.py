"""Yosys' bounded cover of a circuit's toggle points: how many bits take both values."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from hagane.tools.rtl import Result, Sources

_STEPS = 24


def yosys_toggles(sources: Sources, result: Result, seconds: float) -> dict[str, object]:
    """Return the bits that yosys-smtbmc saw take both values in a time, and how many it had.

    Registers start at zero, as in the simulators; the solver is Z3.
    """
    missing = [name for name in ("yosys", "yosys-smtbmc", "z3") if shutil.which(name) is None]
    if missing:
        return {"error": f"not found on PATH: {', '.join(missing)}"}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        files = " ".join(f'"{path}"' for path in sources.files)
        include = " ".join(f'-I"{path}"' for path in sources.include)
        flat = folder / "flat.v"
        script = (
            f"read_verilog -sv -DSYNTHESIS {include} {files}; hierarchy -top {sources.top}; proc; "
            f"flatten; opt_clean; memory -nomap; setundef -zero -init; write_verilog -noattr {flat}"
        )
        done = _run(["yosys", "-q", "-p", script], folder, seconds)
        if done is None or not flat.is_file():
            return {"error": "yosys does not take the circuit within the time"}
        text = flat.read_text()
        clock = result.model.clocks[0] if result.model.clocks else None
        if clock is None:
            return {"error": "no clock"}
        covers, names = [], {}
        for signal, term in result.model.signals.items():
            if not re.search(
                rf"^\s*(?:input|output|wire|reg)\b[^;]*{re.escape(_name(signal))}\s*[;=\[]",
                text, re.M,
            ):  # fmt: skip
                continue
            for index in range(term.width):
                bit = f"{_name(signal)}[{index}]" if term.width > 1 else _name(signal)
                for value in (0, 1):
                    label = f"c{len(covers)}"
                    names[label] = (signal, index, value)
                    covers.append(f"    {label}: cover ({bit} == 1'b{value});")
        body = "\n".join([f"  always @(posedge {clock}) begin", *covers, "  end", "endmodule"])
        at = text.rindex("endmodule")
        (folder / "cov.v").write_text(text[:at] + body + text[at + len("endmodule") :])
        script = (
            f"read_verilog -formal cov.v; prep -top {sources.top}; async2sync; dffunmap; "
            "setundef -zero -init; write_smt2 -wires cov.smt2"
        )
        left = seconds - (time.monotonic() - begin)
        if _run(["yosys", "-q", "-p", script], folder, left) is None:
            return {"error": "yosys does not take the covers within the time"}
        left = seconds - (time.monotonic() - begin)
        words = ["yosys-smtbmc", "-s", "z3", "-c", "-t", str(_STEPS), "cov.smt2"]
        said = _run(words, folder, left) or ""
        reached = {
            names[label] for label in re.findall(r"(c\d+)\b", _reached(said)) if label in names
        }
    both = sum(
        (signal, index, 0) in reached and (signal, index, 1) in reached
        for signal, index, value in names.values()
        if value
    )
    return {
        "both": both,
        "bits": len(names) // 2,
        "seconds": round(time.monotonic() - begin, 1),
    }  # fmt: skip


def _reached(said: str) -> str:
    return "\n".join(line for line in said.splitlines() if "Reached cover statement" in line)


def _name(signal: str) -> str:
    return signal if re.fullmatch(r"\w+", signal) else f"\\{signal} "


def _run(words: list[str], folder: Path, seconds: float) -> str | None:
    """Return what a command printed within a time, None where it failed."""
    try:
        done = subprocess.run(
            ["timeout", str(max(1, int(seconds))), *words], cwd=folder, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
    except OSError:
        return None
    if done.returncode not in (0, 1, 124):
        return None
    if words[0] == "yosys" and done.returncode:
        return None
    return done.stdout
