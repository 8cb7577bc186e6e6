"""The behaviour suite: what is asked (``rows``), and what a model makes of it (``figures``)."""
