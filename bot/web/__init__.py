"""The web server: the webhook, the health routes and the page. Besides `model_proxy` the only package with `async`."""
