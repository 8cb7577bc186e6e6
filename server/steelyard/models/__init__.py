"""Models as callers name them: the base models, and the models of families by number."""
