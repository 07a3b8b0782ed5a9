"""The parts of `mergewright setup`: the manifest, the local page and the files."""
