"""Parts of datasets and their rows that several pages show."""
