"""Cognition over Google ADK: a projection goes in, a typed result comes out."""
