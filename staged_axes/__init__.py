"""Say which leaves `vmap` maps before you have the data."""
