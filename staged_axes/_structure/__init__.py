"""Classes and pytrees: fields, static data, leaves, and what matches them."""
