"""The only writers to GitHub, agents and workspaces: the outbox and what carries it out."""
