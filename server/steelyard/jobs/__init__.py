"""Long work that outlives its process: claimed from the jobs' own tables, run, and taken up again."""
