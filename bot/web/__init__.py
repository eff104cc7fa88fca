"""ASGI ingress: what reaches the bot over HTTP."""
