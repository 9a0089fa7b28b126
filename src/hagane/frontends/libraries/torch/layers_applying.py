"""Layers of ``torch.nn`` that pass stored arguments to a function."""

from __future__ import annotations

from hagane.frontends.libraries.torch.layer import functional

_INPLACE = {"inplace": False}
for _name, _function, _defaults in (
    ("ReLU", "relu", _INPLACE), ("ReLU6", "relu6", _INPLACE), ("SiLU", "silu", _INPLACE),
    ("Mish", "mish", _INPLACE), ("Hardswish", "hardswish", _INPLACE), ("SELU", "selu", _INPLACE),
    ("Hardsigmoid", "hardsigmoid", _INPLACE), ("Tanhshrink", "tanhshrink", {}),
    ("LogSigmoid", "logsigmoid", {}), ("Softsign", "softsign", {}),
    ("LeakyReLU", "leaky_relu", {"negative_slope": 0.01, "inplace": False}),
    ("ELU", "elu", {"alpha": 1.0, "inplace": False}),
    ("CELU", "celu", {"alpha": 1.0, "inplace": False}),
    ("GELU", "gelu", {"approximate": "none"}),
    ("Hardtanh", "hardtanh", {"min_val": -1.0, "max_val": 1.0, "inplace": False}),
    ("Softplus", "softplus", {"beta": 1.0, "threshold": 20.0}),
    ("Threshold", "threshold", {"threshold": ..., "value": ..., "inplace": False}),
    ("GLU", "glu", {"dim": -1}),
    ("Softmax", "softmax", {"dim": None}), ("LogSoftmax", "log_softmax", {"dim": None}),
    ("Softmin", "softmin", {"dim": None}),
    ("CosineSimilarity", "cosine_similarity", {"dim": 1, "eps": 1e-8}),
    ("PixelShuffle", "pixel_shuffle", {"upscale_factor": ...}),
    ("PixelUnshuffle", "pixel_unshuffle", {"downscale_factor": ...}),
    ("Upsample", "interpolate", {"size": None, "scale_factor": None, "mode": "nearest", "align_corners": None}),
    ("Unfold", "unfold", {"kernel_size": ..., "dilation": 1, "padding": 0, "stride": 1}),
    ("Fold", "fold", {"output_size": ..., "kernel_size": ..., "dilation": 1, "padding": 0, "stride": 1}),
    ("LocalResponseNorm", "local_response_norm", {"size": ..., "alpha": 1e-4, "beta": 0.75, "k": 1.0}),
    ("MSELoss", "mse_loss", {"reduction": "mean"}), ("L1Loss", "l1_loss", {"reduction": "mean"}),
    ("SmoothL1Loss", "smooth_l1_loss", {"reduction": "mean"}),
    ("HuberLoss", "huber_loss", {"reduction": "mean"}), ("KLDivLoss", "kl_div", {"reduction": "mean"}),
    ("BCELoss", "binary_cross_entropy", {"weight": None, "reduction": "mean"}),
    ("NLLLoss", "nll_loss", {"weight": None, "reduction": "mean"}),
    ("CTCLoss", "ctc_loss", {"blank": 0, "reduction": "mean", "zero_infinity": False}),
    ("TripletMarginLoss", "triplet_margin_loss", {"margin": 1.0, "reduction": "mean"}),
    ("CosineEmbeddingLoss", "cosine_embedding_loss", {"margin": 0.0, "reduction": "mean"}),
):  # fmt: skip
    functional(_name, f"nn.functional.{_function}", _defaults)
functional(
    "CrossEntropyLoss", "nn.functional.cross_entropy",
    {"weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "mean",
     "label_smoothing": 0.0},
)  # fmt: skip
functional(
    "BCEWithLogitsLoss", "nn.functional.binary_cross_entropy_with_logits",
    {"weight": None, "size_average": None, "reduce": None, "reduction": "mean", "pos_weight": None},
)  # fmt: skip
functional("Tanh", "tanh")
functional("Sigmoid", "sigmoid")
for _suffix in ("", "1d", "2d", "3d"):
    functional(f"Dropout{_suffix}", "nn.functional.dropout", {"p": 0.5, "inplace": False})
functional("AlphaDropout", "nn.functional.dropout", {"p": 0.5, "inplace": False})
for _n in (1, 2, 3):
    functional(
        f"MaxPool{_n}d", f"nn.functional.max_pool{_n}d",
        {"kernel_size": ..., "stride": None, "padding": 0, "dilation": 1, "return_indices": False,
         "ceil_mode": False},
    )  # fmt: skip
    functional(
        f"AvgPool{_n}d", f"nn.functional.avg_pool{_n}d",
        {"kernel_size": ..., "stride": None, "padding": 0, "ceil_mode": False,
         "count_include_pad": True, "divisor_override": None},
    )  # fmt: skip
    functional(
        f"AdaptiveAvgPool{_n}d", f"nn.functional.adaptive_avg_pool{_n}d", {"output_size": ...}
    )
    functional(f"AdaptiveMaxPool{_n}d", f"nn.functional.adaptive_max_pool{_n}d",
               {"output_size": ..., "return_indices": False})  # fmt: skip
