"""Entailment encoders as ONNX graphs: whether a text gives a statement, contradicts it, or neither."""
