"""Named decisions: questions, policies and model under a name, in immutable versions that aliases point to."""
