"""How functions of the library are named where programs look at them: as Chainer's classes are.

A function has two names: its label, which drawings and messages show, and that of its class, under
which times are taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Functions whose class has their name in capitals: ``dropout`` is ``Dropout``.
_CAPITALS = _names(
    """absolute_error accuracy arctanh as_strided batch_inv batch_l2_norm_squared
    batch_normalization binary_accuracy broadcast broadcast_to cast classification_summary clip
    concat connectionist_temporal_classification contrastive copy cross_covariance cumprod cumsum
    decorrelated_batch_normalization diagonal dropout dstack expand_dims
    fixed_batch_normalization fixed_decorrelated_batch_normalization flip forget gaussian get_item
    group_normalization hard_sigmoid hinge hstack huber_loss identity inv layer_normalization
    linear_interpolate local_response_normalization log_softmax max maximum mean mean_absolute_error
    mean_squared_error min minimum moveaxis pad pad_sequence permutate prod repeat reshape
    resize_images rollaxis scatter_add select_item separate shift sigmoid sigmoid_cross_entropy
    simplified_dropconnect softmax softmax_cross_entropy softplus spatial_transformer_grid
    spatial_transformer_sampler split_axis squared_error squeeze stack sum sum_to swapaxes swish
    tanh tile transpose transpose_sequence triplet vstack where zoneout"""
)
# Those whose label is their own name, and their class that in capitals: ``exp`` is ``Exp``.
_SMALL = _names(
    """arccos arcsin arctan arctan2 cholesky cos cosh det erf erfc erfcx exp expm1 fmod log log10
    log1p log2 log_ndtr ndtr ndtri sin sinh sqrt square tan zeta"""
)
# All others: label, and class where that differs.
_OTHERS = {
    "absolute": "|_| Absolute",
    "add": "_ + _ Add",
    "argmax": "ArgMax",
    "argmin": "ArgMin",
    "average": "Mean",
    "average_pooling_1d": "AveragePoolingND",
    "average_pooling_2d": "AveragePooling2D",
    "average_pooling_3d": "AveragePoolingND",
    "average_pooling_nd": "AveragePoolingND",
    "batch_det": "det BatchDet",
    "batch_matmul": "BatchMatMul",
    "batch_renormalization": "BatchRenormalizationFunction",
    "bilinear": "BilinearFunction",
    "clipped_relu": "ClippedReLU",
    "convolution_1d": "ConvolutionND",
    "convolution_2d": "Convolution2DFunction",
    "convolution_3d": "ConvolutionND",
    "convolution_nd": "ConvolutionND",
    "crelu": "CReLU",
    "deconvolution_1d": "DeconvolutionND",
    "deconvolution_2d": "Deconvolution2DFunction",
    "deconvolution_3d": "DeconvolutionND",
    "deconvolution_nd": "DeconvolutionND",
    "decov": "DeCov",
    "depth2space": "Depth2Space",
    "digamma": "digamma DiGamma",
    "dilated_convolution_2d": "Convolution2DFunction",
    "div": "_ / _ Div",
    "einsum": "EinSum",
    "elu": "ELU",
    "embed_id": "EmbedIDFunction",
    "erfcinv": "erfcinv ErfcInv",
    "erfinv": "erfinv ErfInv",
    "f1_score": "ClassificationSummary",
    "fft": "FFT",
    "fixed_batch_renormalization": "FixedBatchNormalization",
    "flatten": "Reshape",
    "fliplr": "FlipLR",
    "flipud": "FlipUD",
    "floordiv": "_ / _ Div",
    "ifft": "FFT",
    "im2col": "Im2Col",
    "leaky_relu": "LeakyReLU",
    "lgamma": "lgamma LGamma",
    "linear": "LinearFunction",
    "local_convolution_2d": "LocalConvolution2DFunction",
    "logsumexp": "LogSumExp",
    "lstm": "LSTM",
    "matmul": "MatMul",
    "max_pooling_1d": "MaxPoolingND",
    "max_pooling_2d": "MaxPoolingND",
    "max_pooling_3d": "MaxPoolingND",
    "max_pooling_nd": "MaxPoolingND",
    "mul": "_ * _ Mul",
    "multiply_matrices": "MatMul",
    "multiply_matrices_reversed": "MatMul",
    "neg": "__neg__ Neg",
    "negative_sampling": "NegativeSamplingFunction",
    "normalize": "NormalizeL2",
    "polygamma": "polygamma PolyGamma",
    "pow": "_ ** _ PowVarVar",
    "precision": "ClassificationSummary",
    "prelu": "PReLUFunction",
    "r2_score": "R2_score",
    "rdiv": "_ / _ Div",
    "recall": "ClassificationSummary",
    "relu": "ReLU",
    "relu6": "ClippedReLU",
    "rfloordiv": "_ / _ Div",
    "roi_average_align_2d": "ROIAverageAlign2D",
    "roi_average_pooling_2d": "ROIAveragePooling2D",
    "roi_max_align_2d": "ROIMaxAlign2D",
    "roi_max_pooling_2d": "ROIMaxPooling2D",
    "roi_pooling_2d": "ROIPooling2D",
    "rpow": "_ ** _ PowVarVar",
    "rrelu": "RReLU",
    "rsub": "_ - _ Sub",
    "slstm": "SLSTM",
    "space2depth": "Space2Depth",
    "sparse_matmul": "CooMatMul",
    "squared_difference": "SquaredError",
    "sub": "_ - _ Sub",
    "tensordot": "TensorDot",
    "tree_lstm": "TreeLSTM",
    "unpooling_1d": "UnpoolingND",
    "unpooling_2d": "Unpooling2D",
    "unpooling_3d": "UnpoolingND",
    "unpooling_nd": "UnpoolingND",
    "upsampling_2d": "Upsampling2D",
}
# The functions that operators of gradients are.
OPERATORS = {
    "Abs": "absolute",
    "Add": "add",
    "Cast": "cast",
    "Concat": "concat",
    "Div": "div",
    "Exp": "exp",
    "Expand": "broadcast_to",
    "Log": "log",
    "MatMul": "matmul",
    "Mul": "mul",
    "Neg": "neg",
    "Pad": "pad",
    "Pow": "pow",
    "ReduceSum": "sum",
    "Reshape": "reshape",
    "Sigmoid": "sigmoid",
    "Split": "split_axis",
    "Sqrt": "sqrt",
    "Squeeze": "squeeze",
    "Sub": "sub",
    "Tanh": "tanh",
    "Transpose": "transpose",
    "Unsqueeze": "expand_dims",
    "Where": "where",
}
# Arithmetic with a number beside a variable.
ARITHMETIC = _names("add sub rsub mul div rdiv floordiv rfloordiv pow rpow")
_WITH_NUMBER = {
    "add": ("_ + {}", "AddConstant"),
    "sub": ("_ + {}", "AddConstant"),
    "rsub": ("{} - _", "SubFromConstant"),
    "mul": ("_ * {}", "MulConstant"),
    "div": ("_ * {}", "MulConstant"),
    "floordiv": ("_ * {}", "MulConstant"),
    "rdiv": ("{} / _", "DivFromConstant"),
    "rfloordiv": ("{} / _", "DivFromConstant"),
    "pow": ("_ ** {}", "PowVarConst"),
    "rpow": ("{} ** _", "PowConstVar"),
}


def names_of(function: str) -> tuple[str, str]:
    """Return the label of a function of the library, and the name of its class.

    A function that Chainer does not have is called by its own name.
    """
    if function in _CAPITALS or function in _SMALL:
        name = "".join(part.capitalize() for part in function.split("_"))
        return (function if function in _SMALL else name), name
    found = _OTHERS.get(function)
    if found is None:
        return function, function
    label, _, name = found.rpartition(" ")
    return label or name, name


def names_with_number(function: str, number: Any) -> tuple[str, str]:
    """Return label and class of arithmetic of a variable and a number.

    A difference and a quotient are a sum and a product with another number, as in Chainer.
    """
    label, name = _WITH_NUMBER[function]
    if function == "sub":
        number = -number
    elif function in ("div", "floordiv"):
        number = 1.0 / number if number else np.divide(1.0, number)
    return label.format(f"({number})" if number < 0 else number), name
