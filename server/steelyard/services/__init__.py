"""Use cases: what the routes, the command line and an embedding program call."""
