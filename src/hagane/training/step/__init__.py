"""The compiled training step: loss, gradients and update as one program."""

from hagane.training.step.torch_step import TorchStep

__all__ = ["TorchStep"]
