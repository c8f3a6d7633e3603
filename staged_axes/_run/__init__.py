"""Run: the function of a user over the flat leaves of a call."""
