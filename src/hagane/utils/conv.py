"""Sizes of sliding windows."""

from hagane.nn.functions.windows import get_conv_outsize, get_deconv_outsize

__all__ = ["get_conv_outsize", "get_deconv_outsize"]
