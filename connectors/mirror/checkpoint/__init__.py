"""The checkpoint connector of a flow: offsets of consumer groups translated for the target."""
