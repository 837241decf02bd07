"""Speed in comparison with other libraries: ``python -m benchmarks``."""
