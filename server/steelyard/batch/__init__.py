"""Many rows at once: decisions about each row of a frame or a file, and an estimator for pipelines."""
