"""The version of Steelyard, in the one place that states it. Anything may import this module."""

__version__ = "0.5.0"
