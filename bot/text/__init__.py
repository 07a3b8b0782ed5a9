"""Writes posted messages, prompts and phrases, and cleans text from other people and programs."""
