"""Extensions of trainers, under Chainer's names."""

from hagane.training.extensions import snapshot_writers
from hagane.training.extensions.curves_page import CurvesPage
from hagane.training.extensions.drawing import DumpGraph, dump_graph
from hagane.training.extensions.evaluator import Evaluator
from hagane.training.extensions.guarding import FailOnNonNumber, unchain_variables
from hagane.training.extensions.live import LiveDisplay
from hagane.training.extensions.log_report import LogReport
from hagane.training.extensions.observing import (
    MicroAverage,
    ParameterStatistics,
    observe_lr,
    observe_value,
)
from hagane.training.extensions.plot_report import PlotReport
from hagane.training.extensions.print_report import PrintReport
from hagane.training.extensions.progress_bar import ProgressBar
from hagane.training.extensions.shifts import (
    CosineShift,
    ExponentialShift,
    InverseShift,
    LinearShift,
    MultistepShift,
    PolynomialShift,
    StepShift,
    WarmupShift,
)
from hagane.training.extensions.snapshots import snapshot, snapshot_object
from hagane.training.extensions.tensorboard import TensorBoard
from hagane.training.extensions.variable_statistics import VariableStatisticsPlot

__all__ = [
    "CosineShift",
    "CurvesPage",
    "DumpGraph",
    "Evaluator",
    "ExponentialShift",
    "FailOnNonNumber",
    "InverseShift",
    "LinearShift",
    "LiveDisplay",
    "LogReport",
    "MicroAverage",
    "MultistepShift",
    "ParameterStatistics",
    "PlotReport",
    "PolynomialShift",
    "PrintReport",
    "ProgressBar",
    "StepShift",
    "TensorBoard",
    "VariableStatisticsPlot",
    "WarmupShift",
    "dump_graph",
    "observe_lr",
    "observe_value",
    "snapshot",
    "snapshot_object",
    "snapshot_writers",
    "unchain_variables",
]
