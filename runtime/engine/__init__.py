"""Loops and commits that carry out what the domain decides."""
