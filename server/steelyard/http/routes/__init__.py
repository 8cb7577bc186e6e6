"""The routes, one module a resource. These stand on no room."""
