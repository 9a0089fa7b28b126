"""Classical machine learning: the domain ``ai.onnx.ml``."""

from hagane.ops.ml import features, labels, linear, maps, svm, tree

OPERATORS = (
    *features.OPERATORS,
    *labels.OPERATORS,
    *linear.OPERATORS,
    *maps.OPERATORS,
    *svm.OPERATORS,
    *tree.OPERATORS,
)
