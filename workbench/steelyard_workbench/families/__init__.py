"""What the pages show of families: the line of models, gates, and what changes them."""
