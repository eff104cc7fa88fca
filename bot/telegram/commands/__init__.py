"""Bot commands and presses, one module each."""
