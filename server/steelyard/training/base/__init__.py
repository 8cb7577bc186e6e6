"""The base model: its data, network, loop and export."""
