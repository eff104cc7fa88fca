"""Sources: files and links become plain text with positions."""
