"""The Steelyard workbench: review, evaluate and promote in a browser or in a notebook."""
