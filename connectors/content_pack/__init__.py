"""The content pack connector: an approved draft becomes a reproducible archive."""
