"""The proxy between agents and model APIs, which holds the keys and meters usage."""
