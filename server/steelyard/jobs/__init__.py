"""Long work that outlives its process: durable workflows on DBOS, and the process that runs them."""
