"""Maps of datasets: rows as points, coloured, and chosen for review."""
