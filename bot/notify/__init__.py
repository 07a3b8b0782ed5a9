"""Notifies people by chat, mail and webhook: of sessions that need them, incidents and outcomes."""
