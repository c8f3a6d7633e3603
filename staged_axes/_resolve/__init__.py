"""Resolve: a record and a value -> one axis for each leaf, and all that misfits."""
