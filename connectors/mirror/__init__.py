"""Mirroring between clusters: MirrorMaker 2's three connectors, and the flows that are made of them."""
