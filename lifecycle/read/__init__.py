"""Facts read together: the view of a session that rules and reactions ask."""
