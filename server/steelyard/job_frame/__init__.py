"""What all kinds of jobs are alike in: their rows, how they are queued, read and stopped, their routes."""
