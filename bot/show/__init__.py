"""Views of a session for people and programs: summaries, transcripts and terminals."""
