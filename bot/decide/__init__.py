"""Decisions: resyncs sessions, and knows policies, capacity and assignments."""
