"""Bind: what users hold, builders and records that are bound to a value."""
