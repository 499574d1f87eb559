"""The checkpoint connector of a flow, which translates offsets of consumer groups for the target."""
