"""What `mergewright setup` is made of: an App's manifest, the page on loopback, the files."""
