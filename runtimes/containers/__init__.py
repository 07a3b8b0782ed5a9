"""The programs outside and inside a container, which use only the standard library."""
