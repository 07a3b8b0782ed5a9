"""Programs at both sides of a container, which need the standard library alone."""
