"""Named decisions as the workbench shows them."""
