"""What runs at both sides of a container, with the standard library alone."""
