"""The behaviour suite: its rows (``rows``), and a model's scores (``figures``)."""
