"""Input: webhook deliveries, polled comments and local commands."""
