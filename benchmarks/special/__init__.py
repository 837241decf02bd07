"""Comparisons that are not part of the main run: `make bench BENCH_ARGS=--tensors` and its like."""
