"""The process: what a bot is made of, its workers, and its claim to the database."""
