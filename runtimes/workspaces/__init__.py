"""The git side of sessions: mirrors of projects, workspaces of agents, and safe pushes."""
