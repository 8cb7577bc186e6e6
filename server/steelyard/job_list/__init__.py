"""Jobs of all kinds in one list, as every room of jobs has them."""
