"""The web server: the webhook, the health routes, the pages and the API."""
