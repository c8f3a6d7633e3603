"""Batches of values, put together and taken apart."""
