"""The archive of agents' files, the retention of all data, and backups."""
