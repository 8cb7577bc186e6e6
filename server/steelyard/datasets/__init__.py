"""Datasets: rows read, checked and hashed, their sides, their versions, and filters over them."""
