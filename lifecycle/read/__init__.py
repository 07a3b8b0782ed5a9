"""Queries over the facts: the view of a session that rules and reactions use."""
