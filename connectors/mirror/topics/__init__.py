"""The topics of a flow at the target, kept in sync with the source: partitions, settings and ACLs."""
