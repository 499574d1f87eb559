"""The source connector of a flow, which mirrors topics to another cluster."""
