"""The bot process: its wiring, its workers and its lease on the database."""
