"""The web server: the webhook, the health routes and the pages."""
