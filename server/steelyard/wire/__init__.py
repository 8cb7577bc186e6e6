"""The API on the wire: shapes of requests and responses, and reading them strictly."""
