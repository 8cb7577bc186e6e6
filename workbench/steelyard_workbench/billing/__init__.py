"""The parts of the page of usage and billing: the balance, what was spent, and what is bought."""
