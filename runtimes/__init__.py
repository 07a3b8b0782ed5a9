"""Where programs live, what they work in, and how each agent is spoken to."""
