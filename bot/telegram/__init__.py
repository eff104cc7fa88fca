"""The Telegram front end: updates become events, stored state becomes cards."""
