"""The routes, one module a resource. A handler decodes, calls one service and encodes."""
