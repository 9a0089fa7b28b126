"""All operators, family by family; a family is imported when one of its operators is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from hagane.ops.definition import OpDef
from hagane.ops.schema import Schema

# Package beside this module, domain, names. Tests hold each against the definitions.
FAMILIES: Mapping[str, Mapping[str, str]] = {
    "attention": {
        "": "Attention CausalConvWithState LinearAttention RotaryEmbedding",
    },
    "container": {
        "": """
            ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt
            SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
            SplitToSequence
        """,
    },
    "contrib": {
        "": "ScaledTanh SimplifiedLayerNormalization",
        "com.microsoft": """
            Attention BiasAdd BiasGelu BiasSplitGelu CDist DequantizeLinear DynamicQuantizeLSTM
            DynamicQuantizeMatMul EmbedLayerNormalization ExpandDims FastGelu FusedConv FusedGemm
            FusedMatMul GatherBlockQuantized GatherND Gelu GroupNorm GroupQueryAttention Inverse
            Irfft MatMulIntegerToFloat MatMulNBits MultiHeadAttention NhwcMaxPool Pad QGemm
            QLinearAdd QLinearAveragePool QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu
            QLinearMul QLinearSigmoid QLinearSoftmax QLinearWhere QuantizeLinear QuickGelu Range
            Rfft RotaryEmbedding SkipLayerNormalization SkipSimplifiedLayerNormalization
            TransposeMatMul Trilu
        """,
    },
    "control": {
        "": "If Loop Scan SequenceMap",
    },
    "convolution": {
        "": """
            AveragePool Col2Im Conv ConvInteger ConvTranspose DeformConv GlobalAveragePool
            GlobalLpPool GlobalMaxPool LpPool MaxPool MaxRoiPool MaxUnpool
        """,
    },
    "elementwise": {
        "": """
            Abs Acos Acosh Add And Asin Asinh Atan Atanh BitCast BitShift BitwiseAnd BitwiseNot
            BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh Det Div Elu Equal Erf Exp
            Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less
            LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round
            Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum SwiGLU Swish Tan Tanh
            ThresholdedRelu Where Xor
        """,
    },
    "indexing": {
        "ai.onnx.ml": "ArrayFeatureExtractor",
        "": "Gather GatherElements GatherND ScatterElements ScatterND TensorScatter",
    },
    "layout": {
        "": """
            CenterCropPad Compress Concat Constant ConstantOfShape DepthToSpace Expand EyeLike
            Flatten Identity OneHot Pad Range Reshape ReverseSequence Shape Size Slice
            SpaceToDepth Split Squeeze Tile Transpose Trilu Unsqueeze
        """,
    },
    "linear": {
        "": "Einsum Gemm MatMul MatMulInteger",
    },
    "ml": {
        "ai.onnx.ml": """
            Binarizer CastMap CategoryMapper DictVectorizer FeatureVectorizer Imputer LabelEncoder
            LinearClassifier LinearRegressor Normalizer OneHotEncoder SVMClassifier SVMRegressor
            Scaler TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor ZipMap
        """,
    },
    "normalization": {
        "": """
            BatchNormalization Dropout GroupNormalization Hardmax InstanceNormalization LRN
            LayerNormalization LogSoftmax LpNormalization MeanVarianceNormalization
            NegativeLogLikelihoodLoss RMSNormalization Softmax SoftmaxCrossEntropyLoss
        """,
    },
    "quantization": {
        "": """
            DequantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul QuantizeLinear
        """,
    },
    "random": {
        "": """
            Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike
        """,
    },
    "recurrent": {
        "": "GRU LSTM RNN",
    },
    "reduction": {
        "": """
            ArgMax ArgMin CumProd CumSum NonZero ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp
            ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare TopK Unique
        """,
    },
    "signal": {
        "": "BlackmanWindow DFT HammingWindow HannWindow MelWeightMatrix STFT",
    },
    "text": {
        "": "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer",
    },
    "vision": {
        "": "AffineGrid GridSample ImageDecoder NonMaxSuppression Resize RoiAlign",
    },
}


class Operators(Mapping[tuple[str, str], OpDef]):
    """Operators by domain and name."""

    def __init__(self) -> None:
        self._families = {
            (domain, name): family
            for family, domains in FAMILIES.items()
            for domain, names in domains.items()
            for name in names.split()
        }
        self._loaded: dict[tuple[str, str], OpDef] = {}

    def __getitem__(self, key: tuple[str, str]) -> OpDef:
        found = self._loaded.get(key)
        if found is None:
            self._loaded |= {op.key: op for op in definitions(self._families[key])}
            found = self._loaded[key]
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._families

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._families)

    def __len__(self) -> int:
        return len(self._families)


def definitions(family: str) -> tuple[OpDef, ...]:
    """Return the operators of one family."""
    found: tuple[OpDef, ...] = import_module(f"hagane.ops.{family}").OPERATORS
    return found


def schemas() -> Mapping[tuple[str, str], Schema]:
    """Return the schemas of operators that ONNX does not define."""
    from hagane.ops import contrib

    return contrib.SCHEMAS
