"""Features of this server: models, recipes, bounds and prices."""
