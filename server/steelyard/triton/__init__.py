"""Triton as a host of the scorer's passes: model repositories, a server to run them, and a check.

A Triton model is one set of weights in the packed graph: a base model, or a base model with a LoRA
adapter merged in. Its inputs and outputs are those of a pass (``steelyard.scoring.passes``);
tokenising, packing and heads stay in the service.
"""
