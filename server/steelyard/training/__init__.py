"""Training: what makes the weights that ship; needs the ``train`` extra."""
