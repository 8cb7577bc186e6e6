"""Parts of the page of live decisions."""
