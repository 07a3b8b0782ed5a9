"""The proxy between agents and model APIs: keys stay here, usage is metered here."""
