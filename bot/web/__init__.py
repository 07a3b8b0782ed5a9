"""The web server: the webhook, the health routes and the page. The only room with `async`."""
