"""Utilities for every package: clock, locations, redaction, HTTP server, crash points."""
