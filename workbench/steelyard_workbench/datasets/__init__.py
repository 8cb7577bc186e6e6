"""What the pages of datasets and versions are made of."""
