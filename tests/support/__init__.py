"""Parts that tests of several rooms share."""
