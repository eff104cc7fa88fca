"""The bot: composes runtime and connectors and talks to people."""
