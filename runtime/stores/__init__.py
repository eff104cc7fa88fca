"""Collections and the stores that hold them. Stores hold no rules."""
