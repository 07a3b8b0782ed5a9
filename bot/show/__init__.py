"""Views for pages, the API and commands: of sessions, agents, projects, costs and the bot."""
