"""What this package costs, as ratios against JAX written by hand.

`python -m benchmarks` prints one table. `suite.py` lists the rows; each says what is
timed against what in a file named after it.
"""
