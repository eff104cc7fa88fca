"""Benchmarks: ratios measured in one run; never asserted on a clock in a test."""
