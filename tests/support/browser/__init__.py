"""Pages of the workbench, and who goes through them."""
