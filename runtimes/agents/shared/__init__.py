"""What the adapters of several agents have in common."""
