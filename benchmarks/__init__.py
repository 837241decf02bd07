"""Speed against the libraries people use today: ``python -m benchmarks``."""
