"""How good a model's answers are: measures, slices, curves, paired comparisons and the gate."""
