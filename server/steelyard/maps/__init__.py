"""Maps of datasets: rows as points in a plane, near where their contexts are alike."""
