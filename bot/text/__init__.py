"""Writes posted messages, prompts and phrases, and cleans text of other people and programs."""
