"""Places where artifact bytes live."""
