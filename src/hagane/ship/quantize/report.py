"""The cost of a quantisation, as data and as a page."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument, NoSuchFile
from hagane.machine.whole_files import write_whole

# Where bars of the page end, in decibels.
_MOST_DB = 60.0
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884 }
td.bar { width: 40% }
td.bar div { background: #3a7; height: .7rem }
tr.fp32 td.bar div { background: #c63 }
.table { overflow-x: auto }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #dde } }
"""


@dataclass(frozen=True, slots=True)
class LayerReport:
    """A layer, and the error that bytes make in it by themselves.

    Attributes:
        name: Of the layer.
        operator: Its operator.
        precision: ``int8``, ``int4`` or ``fp32``.
        snr_db: Signal to noise of its result in decibels; None where there is no error.
        effect_db: The same of the model's outputs, with this layer alone in bytes; None where there
            is no error, or it was not measured.
        fp32_ms: Milliseconds of its kernels in fp32; None where they were not measured, or it has
            no kernel of its own.
        ms: The same as it is now.
    """

    name: str
    operator: str
    precision: str
    snr_db: float | None
    effect_db: float | None = None
    fp32_ms: float | None = None
    ms: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The quantised layers and their cost.

    Attributes:
        layers: All that could be.
        method: How ranges were found.
        feeds: How many there were.
        metric: Of the model as it was, and as it is; None if there is none.
        bytes: Of both files.
        milliseconds: Of a run of both; None if they were not measured.
    """

    layers: tuple[LayerReport, ...]
    method: str
    feeds: int
    metric: tuple[float, float] | None
    bytes: tuple[int, int]
    milliseconds: tuple[float, float] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        before, after = self.metric or (None, None)
        slow, fast = self.milliseconds or (None, None)
        return {
            "method": self.method,
            "feeds": self.feeds,
            "metric": {"fp32": before, "quantized": after},
            "bytes": {"fp32": self.bytes[0], "quantized": self.bytes[1]},
            "ms": {"fp32": slow, "quantized": fast},
            "layers": [asdict(layer) for layer in self.layers],
        }

    def write(self, path: Path) -> None:
        """Write it as JSON or HTML, as the file's name says.

        Raises:
            InvalidArgument: It says neither.
            NoSuchFile: There is no such folder.
        """
        check_report(path)
        if path.suffix == ".json":
            text = json.dumps(self.as_json(), indent=2) + "\n"
        else:
            text = self._page()
        write_whole(path, text)

    def _page(self) -> str:
        rows = "\n".join(map(_row, self.layers))
        told = ""
        if self.metric is not None:
            told = f"<p>Metric: {self.metric[0]:.6g} before, {self.metric[1]:.6g} after.</p>"
        if self.milliseconds is not None:
            slow, fast = self.milliseconds
            told += f"<p>A run: {slow:.3g} ms in fp32, {fast:.3g} ms as it is now.</p>"
        kept = sum(layer.precision == "fp32" for layer in self.layers)
        return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Quantisation</title>
<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>
</head><body>
<h1>Quantisation</h1>
<p>{len(self.layers)} layers, {kept} of them kept in fp32; ranges by {self.method} over {self.feeds}
feeds; {self.bytes[0]:,} bytes before, {self.bytes[1]:,} after.</p>
{told}
<p>Signal to noise of each layer by itself: its input and weights as bytes, everything before it
as it was; and of the model's outputs with this layer alone in bytes. Larger is better. Layers kept
in fp32 are those with the worst effect on the outputs, as few as the metric allows. Times are those
of a layer's own kernels.</p>
<div class="table"><table>
<tr><th>layer</th><th>operator</th><th>precision</th><th>layer, dB</th><th></th>
<th>outputs, dB</th><th>fp32, ms</th><th>now, ms</th></tr>
{rows}
</table></div></body></html>
"""


def _row(layer: LayerReport) -> str:
    decibels = math.inf if layer.snr_db is None else layer.snr_db
    width = max(0.0, min(1.0, decibels / _MOST_DB))
    number = "no error" if layer.snr_db is None else f"{layer.snr_db:.1f}"
    return (
        f'<tr class="{layer.precision}"><td>{html.escape(layer.name)}</td><td>{layer.operator}</td>'
        f'<td>{layer.precision}</td><td>{number}</td><td class="bar">'
        f'<div style="width:{width:.0%}"></div></td><td>{_number(layer.effect_db)}</td>'
        f"<td>{_time(layer.fp32_ms)}</td><td>{_time(layer.ms)}</td></tr>"
    )


def _time(milliseconds: float | None) -> str:
    return "" if milliseconds is None else f"{milliseconds:.3f}"


def _number(decibels: float | None) -> str:
    return "" if decibels is None else f"{decibels:.1f}"


def check_report(path: Path) -> None:
    """Raise an error unless a report can be written there, in the form that its name says."""
    if path.suffix not in (".json", ".html"):
        raise InvalidArgument(f"--report '{path}': expected a name that ends in .json or .html")
    if not path.absolute().parent.is_dir():
        raise NoSuchFile(f"--report '{path}': there is no folder '{path.parent}'")


def table_lines(layers: Sequence[LayerReport]) -> list[str]:
    """Return layers as lines of a table, the worst first."""
    ordered = sorted(layers, key=lambda x: math.inf if x.snr_db is None else x.snr_db)
    felt = any(layer.effect_db is not None for layer in layers)
    timed = any(layer.ms is not None for layer in layers)
    return [
        f"{_number(layer.snr_db) or '-':>7} dB  "
        + (f"outputs {_number(layer.effect_db) or '-':>7} dB  " if felt else "")
        + (f"{_time(layer.fp32_ms) or '-':>8} -> {_time(layer.ms) or '-':>8} ms  " if timed else "")
        + f"{layer.precision}  {layer.operator} {layer.name}"
        for layer in ordered
    ]
