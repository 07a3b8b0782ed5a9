"""Every sentence the bot posts, every prompt it sends, and reading the Markdown of others."""
