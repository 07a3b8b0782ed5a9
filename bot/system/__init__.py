"""Utilities for every package: clock, log, paths, redaction, crash points."""
