"""The common frame of all jobs: their rows, queue, reads, stops and routes."""
