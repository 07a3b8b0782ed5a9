"""Derives the status from the facts: signals, rules, blockers, escalations."""
