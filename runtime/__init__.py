"""The durable runtime. It knows no chat, no provider and no model SDK."""
