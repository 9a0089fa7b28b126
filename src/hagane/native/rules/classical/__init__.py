"""Operators of ai.onnx.ml: forests, support vectors, linear models, features."""
