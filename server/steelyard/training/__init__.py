"""Training: the network that fine-tuning trains, and export from a hub; needs the ``train`` extra."""
