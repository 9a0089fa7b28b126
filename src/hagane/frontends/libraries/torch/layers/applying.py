"""Layers of ``torch.nn`` that pass stored arguments to a function."""

from __future__ import annotations

from hagane.frontends.libraries.torch.layers.layer import functional
from hagane.frontends.python.values.values import Value

_INPLACE = {"inplace": False}
_UNPOOLING = {"kernel_size": ..., "stride": None, "padding": 0}
for _name, _function, _defaults in (
    ("ReLU", "relu", _INPLACE), ("SiLU", "silu", _INPLACE),
    ("Mish", "mish", _INPLACE), ("Hardswish", "hardswish", _INPLACE), ("SELU", "selu", _INPLACE),
    ("Hardsigmoid", "hardsigmoid", _INPLACE), ("Tanhshrink", "tanhshrink", {}),
    ("LogSigmoid", "logsigmoid", {}), ("Softsign", "softsign", {}),
    ("LeakyReLU", "leaky_relu", {"negative_slope": 0.01, "inplace": False}),
    ("ELU", "elu", {"alpha": 1.0, "inplace": False}),
    ("CELU", "celu", {"alpha": 1.0, "inplace": False}),
    ("GELU", "gelu", {"approximate": "none"}),
    ("Softplus", "softplus", {"beta": 1.0, "threshold": 20.0}),
    ("Threshold", "threshold", {"threshold": ..., "value": ..., "inplace": False}),
    ("GLU", "glu", {"dim": -1}),
    ("Softmax", "softmax", {"dim": None}), ("LogSoftmax", "log_softmax", {"dim": None}),
    ("Softmin", "softmin", {"dim": None}),
    ("CosineSimilarity", "cosine_similarity", {"dim": 1, "eps": 1e-8}),
    ("PixelShuffle", "pixel_shuffle", {"upscale_factor": ...}),
    ("PixelUnshuffle", "pixel_unshuffle", {"downscale_factor": ...}),
    ("Unfold", "unfold", {"kernel_size": ..., "dilation": 1, "padding": 0, "stride": 1}),
    ("Fold", "fold",
     {"output_size": ..., "kernel_size": ..., "dilation": 1, "padding": 0, "stride": 1}),
    ("LocalResponseNorm", "local_response_norm",
     {"size": ..., "alpha": 1e-4, "beta": 0.75, "k": 1.0}),
    ("CTCLoss", "ctc_loss", {"blank": 0, "reduction": "mean", "zero_infinity": False}),
    ("Hardshrink", "hardshrink", {"lambd": 0.5}), ("Softshrink", "softshrink", {"lambd": 0.5}),
    ("ChannelShuffle", "channel_shuffle", {"groups": ...}),
    ("MaxUnpool1d", "max_unpool1d", _UNPOOLING), ("MaxUnpool2d", "max_unpool2d", _UNPOOLING),
    ("MaxUnpool3d", "max_unpool3d", _UNPOOLING),
):  # fmt: skip
    functional(_name, f"nn.functional.{_function}", _defaults)
# The arguments of losses before ``reduction``; two of all are old names without effect.
for _name, _function, _first, _last in (
    ("MSELoss", "mse_loss", {}, {}), ("L1Loss", "l1_loss", {}, {}),
    ("SmoothL1Loss", "smooth_l1_loss", {}, {"beta": 1.0}),
    ("KLDivLoss", "kl_div", {}, {"log_target": False}),
    ("SoftMarginLoss", "soft_margin_loss", {}, {}),
    ("BCELoss", "binary_cross_entropy", {"weight": None}, {}),
    ("BCEWithLogitsLoss", "binary_cross_entropy_with_logits", {"weight": None},
     {"pos_weight": None}),
    ("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", {"weight": None}, {}),
    ("MultiLabelMarginLoss", "multilabel_margin_loss", {}, {}),
    ("CosineEmbeddingLoss", "cosine_embedding_loss", {"margin": 0.0}, {}),
    ("MarginRankingLoss", "margin_ranking_loss", {"margin": 0.0}, {}),
    ("HingeEmbeddingLoss", "hinge_embedding_loss", {"margin": 1.0}, {}),
    ("TripletMarginLoss", "triplet_margin_loss",
     {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False}, {}),
    ("MultiMarginLoss", "multi_margin_loss", {"p": 1, "margin": 1.0, "weight": None}, {}),
):  # fmt: skip
    functional(
        _name,
        f"nn.functional.{_function}",
        {**_first, "size_average": None, "reduce": None, "reduction": "mean", **_last},
    )
for _name, _function, _last in (
    ("CrossEntropyLoss", "cross_entropy", {"label_smoothing": 0.0}), ("NLLLoss", "nll_loss", {}),
):  # fmt: skip
    functional(
        _name, f"nn.functional.{_function}",
        {"weight": None, "size_average": None, "ignore_index": -100, "reduce": None,
         "reduction": "mean", **_last},
    )  # fmt: skip
functional("ReLU6", "nn.functional.relu6", _INPLACE, shown={"min_val": 0.0, "max_val": 6.0})
functional("Hardtanh", "nn.functional.hardtanh",
           {"min_val": -1.0, "max_val": 1.0, "inplace": False, "min_value": None,
            "max_value": None}, "min_val", "max_val", "inplace", "", "")  # fmt: skip
_SCALED: dict[str, Value] = {"size": None, "scale_factor": None}
_NEAREST = {"mode": "nearest", "align_corners": None, "recompute_scale_factor": None}
functional("Upsample", "nn.functional.interpolate", {**_SCALED, **_NEAREST},
           shown={"name": "Upsample"})  # fmt: skip
functional("UpsamplingNearest2d", "nn.functional.interpolate", _SCALED,
           shown={"name": "UpsamplingNearest2d", **_NEAREST})  # fmt: skip
functional("UpsamplingBilinear2d", "nn.functional.interpolate", _SCALED,
           fixed={"mode": "bilinear", "align_corners": True},
           shown={"name": "UpsamplingBilinear2d", "recompute_scale_factor": None})  # fmt: skip
functional("PairwiseDistance", "nn.functional.pairwise_distance",
           {"p": 2.0, "eps": 1e-6, "keepdim": False}, kept={"p": "norm"})  # fmt: skip
functional(
    "TripletMarginWithDistanceLoss", "nn.functional.triplet_margin_with_distance_loss",
    {"distance_function": None, "margin": 1.0, "swap": False, "reduction": "mean"},
    by_name=("distance_function", "margin", "swap", "reduction"),
)  # fmt: skip
functional("HuberLoss", "nn.functional.huber_loss", {"reduction": "mean", "delta": 1.0})
functional("PoissonNLLLoss", "nn.functional.poisson_nll_loss",
           {"log_input": True, "full": False, "size_average": None, "eps": 1e-8, "reduce": None,
            "reduction": "mean"})  # fmt: skip
functional("GaussianNLLLoss", "nn.functional.gaussian_nll_loss",
           {"full": False, "eps": 1e-6, "reduction": "mean"},
           by_name=("full", "eps", "reduction"))  # fmt: skip
functional("Softmax2d", "nn.functional.softmax", fixed={"dim": -3})
functional("Tanh", "tanh")
functional("RReLU", "nn.functional.rrelu", {"lower": 1 / 8, "upper": 1 / 3, "inplace": False},
           training=True)  # fmt: skip
functional("Sigmoid", "sigmoid")
for _name, _function in (
    ("Dropout", "dropout"), ("Dropout1d", "dropout1d"), ("Dropout2d", "dropout2d"),
    ("Dropout3d", "dropout3d"), ("AlphaDropout", "alpha_dropout"),
    ("FeatureAlphaDropout", "feature_alpha_dropout"),
):  # fmt: skip
    functional(_name, f"nn.functional.{_function}", {"p": 0.5, "inplace": False}, training=True)
for _n in (1, 2, 3):
    functional(
        f"MaxPool{_n}d", f"nn.functional.max_pool{_n}d",
        {"kernel_size": ..., "stride": None, "padding": 0, "dilation": 1, "return_indices": False,
         "ceil_mode": False},
    )  # fmt: skip
    functional(
        f"AvgPool{_n}d", f"nn.functional.avg_pool{_n}d",
        {"kernel_size": ..., "stride": None, "padding": 0, "ceil_mode": False,
         "count_include_pad": True, **({"divisor_override": None} if _n > 1 else {})},
    )  # fmt: skip
    functional(
        f"LPPool{_n}d", f"nn.functional.lp_pool{_n}d",
        {"norm_type": ..., "kernel_size": ..., "stride": None, "ceil_mode": False},
    )  # fmt: skip
    functional(
        f"AdaptiveAvgPool{_n}d", f"nn.functional.adaptive_avg_pool{_n}d", {"output_size": ...}
    )
    functional(f"AdaptiveMaxPool{_n}d", f"nn.functional.adaptive_max_pool{_n}d",
               {"output_size": ..., "return_indices": False})  # fmt: skip
