"""Notifies people by chats, mail and webhooks: what they have to know, when, and by which way."""
