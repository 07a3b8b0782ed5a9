"""The archive of agents' files, and the retention of all data."""
