"""What people and programs are shown: session summaries, transcripts, terminals."""
