"""Ways of telling a worker that there is something to look at: signals only."""
