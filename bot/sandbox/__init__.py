"""A Bot-API-compatible server and chat page, for trying and testing without a token."""
