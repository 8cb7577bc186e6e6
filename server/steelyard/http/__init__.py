"""HTTP: the application, its one error handler and its routes. Rooms know Sanic only where bodies are no JSON."""
