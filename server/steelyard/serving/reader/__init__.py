"""Readers: entailment encoders that answer decisions in this process, without PyTorch."""
