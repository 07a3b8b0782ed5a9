"""What comes in: webhook deliveries, polled comments and local commands."""
