"""What people and programs see of a session: summaries, transcripts and terminals."""
