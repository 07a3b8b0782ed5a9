"""From facts to a status: signals, rules, blockers, escalations."""
