"""Views of the workbench that were saved under a name, for everybody of an account."""
