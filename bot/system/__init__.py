"""What every package may use of this machine: clock, log, paths, redaction, crash points."""
