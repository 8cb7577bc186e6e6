"""What this server can do: models, recipes, bounds and prices."""
