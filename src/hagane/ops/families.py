"""The names of all operators, family by family; a family is a package beside this module."""

from __future__ import annotations

from collections.abc import Mapping

# Package, domain, names. Tests hold each against the definitions.
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
        "": """
            Affine Crop DynamicSlice ImageScaler ParametricSoftplus Scale ScaledTanh
            SimplifiedLayerNormalization
        """,
        "com.microsoft": """
            Attention BiasAdd BiasGelu BiasSplitGelu BranchwiseRMSNorm
            CausalConvWithState CDist DecoderMaskedMultiHeadAttention
            DequantizeLinear DynamicQuantizeLSTM
            DynamicQuantizeMatMul EmbedLayerNormalization ExpandDims FastGelu
            FusedConv FusedGemm FusedMatMul GatedAdd GatedRMSNorm
            GatherBlockQuantized GatherND Gelu GridSample GroupNorm
            GroupQueryAttention Inverse Irfft LinearAttention LinearAttentionGate
            MatMulBnb4 MatMulInteger16 MatMulIntegerToFloat MatMulNBits MoE
            MRotaryEmbedding MultiHeadAttention MurmurHash3 NGramRepeatBlock
            NhwcMaxPool Pad QAttention QEmbedLayerNormalization QGemm QLinearAdd
            QLinearAveragePool QLinearConcat QLinearConv QLinearGlobalAveragePool
            QLinearLeakyRelu QLinearMul QLinearSigmoid QLinearSoftmax QLinearWhere QMoE
            QuantizeLinear QuickGelu Range Rfft RotaryEmbedding ScaledSiLU
            SkipLayerNormalization SkipSimplifiedLayerNormalization
            SparseToDenseMatMul Tokenizer TransposeMatMul Trilu UnfoldTensor Unique
        """,
        "com.microsoft.nchwc": """
            AveragePool Conv GlobalAveragePool GlobalMaxPool MaxPool ReorderInput ReorderOutput
            Upsample
        """,
    },
    "control": {
        "": "If Loop Scan SequenceMap",
        "hagane": "OwnGradient",
    },
    "convolution": {
        "": """
            AveragePool Col2Im Conv ConvInteger ConvTranspose DeformConv GlobalAveragePool
            GlobalLpPool GlobalMaxPool LpPool MaxPool MaxRoiPool MaxUnpool
        """,
        "hagane": "AveragePoolGradient ConvWeightGradient MaxPoolGradient",
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
        "hagane": "SelectGreater",
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
        "hagane": "StopGradient",
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
        "hagane": """
            BatchNormTraining BatchNormTrainingGradient LayerNormTraining
            LayerNormTrainingGradient
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
        "hagane": "LSTMSteps LSTMStepsGradient",
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
