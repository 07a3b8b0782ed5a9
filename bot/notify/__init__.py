"""Notifies people of sessions that need them, incidents and outcomes: by chat, mail, webhook."""
