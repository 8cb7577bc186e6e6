"""Widgets that Panel lacks; whatever may change with a new Panel is in here."""
