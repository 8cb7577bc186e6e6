"""Routes: ordered models, each with the top probability below which the next one decides."""
