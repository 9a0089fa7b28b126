"""Progress bars and records of training: they pass on what they are given, or return nothing.

Their calls take any value, unknown ones too: no tensor comes of them.
"""

from __future__ import annotations

from typing import Any

from hagane.frontends.libraries.table import Table, View
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Host,
    Truth,
    Value,
)

TQDM = Table("tqdm", "tqdm.Tensor")
_BARS = ("tqdm", "auto.tqdm", "std.tqdm", "notebook.tqdm", "asyncio.tqdm", "autonotebook.tqdm")
_RANGES = ("trange", "auto.trange", "std.trange", "notebook.trange", "autonotebook.trange")


def _nothing(t: Core, self: View, *arguments: Value, **keywords: Value) -> Value:
    return None


def _silent(*names: str) -> dict[str, Any]:
    return {name: staticmethod(_nothing) for name in names}


class Bar:
    """Items of another iterable, counted on the screen."""

    @staticmethod
    def init(
        t: Core, iterable: Value = None, desc: Value = None, total: Value = None, *rest: Value,
        **settings: Value,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        count = t.emit.fresh("count")
        return {"iterable": iterable, "desc": desc, "total": total, "n": count,
                "disable": settings.get("disable", False), "format_dict": t.new_dict()}  # fmt: skip

    @staticmethod
    def __iter__(t: Core, self: View) -> Value:
        return t.new_list(t.sequence(self.raw("iterable")))

    @staticmethod
    def __len__(t: Core, self: View) -> Value:
        total = self.raw("total")
        return t.call(Host(len), [self.raw("iterable")], {}) if total is None else total

    @staticmethod
    def __enter__(t: Core, self: View) -> Value:
        return self.instance()

    @staticmethod
    def update(t: Core, self: View, n: Value = 1) -> Value:
        """Return whether the bar was drawn."""
        return Truth(t.unknown_truth())

    @staticmethod
    def write(t: Core, *arguments: Value, **keywords: Value) -> Value:
        """Return nothing."""
        return None


for _name, _method in _silent(
    "set_description", "set_description_str", "set_postfix", "set_postfix_str", "close", "clear",
    "refresh", "reset", "unpause", "display", "moveto", "__exit__",
).items():  # fmt: skip
    setattr(Bar, _name, _method)
TQDM.layer(*_BARS)(Bar)


@TQDM.function(*(f"{name}.write" for name in _BARS))
def _write(t: Core, text: Value = "", **_: Value) -> Value:
    """Return nothing."""
    return None


def _range(t: Core, *bounds: Value, **settings: Value) -> Value:
    return t.call_library("tqdm.tqdm", [t.call(Host(range), bounds, {})], settings)


TQDM.function(*_RANGES)(_range)


class Writer:
    """A folder of records for TensorBoard."""

    @staticmethod
    def init(
        t: Core, log_dir: Value = None, comment: Value = "", purge_step: Value = None,
        max_queue: Value = 10, flush_secs: Value = 120, filename_suffix: Value = "",
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        folder = log_dir if log_dir is not None else t.outside("the folder of a record")
        return {"log_dir": folder, "purge_step": purge_step, "max_queue": max_queue,
                "flush_secs": flush_secs, "filename_suffix": filename_suffix}  # fmt: skip

    @staticmethod
    def get_logdir(t: Core, self: View) -> Value:
        """Return the folder."""
        return self.raw("log_dir")

    @staticmethod
    def __enter__(t: Core, self: View) -> Value:
        return self.instance()


for _name, _method in _silent(
    "add_scalar", "add_scalars", "add_tensor", "add_histogram", "add_histogram_raw", "add_image",
    "add_images", "add_image_with_boxes", "add_figure", "add_video", "add_audio", "add_text",
    "add_onnx_graph", "add_graph", "add_embedding", "add_pr_curve", "add_pr_curve_raw",
    "add_custom_scalars", "add_custom_scalars_multilinechart", "add_custom_scalars_marginchart",
    "add_mesh", "add_hparams", "flush", "close", "__exit__",
).items():  # fmt: skip
    setattr(Writer, _name, _method)
TORCH.layer("utils.tensorboard.SummaryWriter", "utils.tensorboard.writer.SummaryWriter")(Writer)


__all__ = ["TQDM"]
