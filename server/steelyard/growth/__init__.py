"""Growth: named decisions that get a family of their own, by themselves and only with leave."""
