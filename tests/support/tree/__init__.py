"""The repository, its documents, and how tests are collected."""
