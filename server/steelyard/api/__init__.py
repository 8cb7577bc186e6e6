"""HTTP: the application, its one error handler and its routes. Nothing else knows Sanic."""
