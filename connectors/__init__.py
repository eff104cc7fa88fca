"""Connectors to the outside: sources in, effects out. Imports runtime only."""
