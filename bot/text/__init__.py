"""Posted messages, prompts, and preparing text of other people and programs."""
