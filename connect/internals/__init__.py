"""What workers, connectors and Spark share, and no plugin author imports: it may change at any time."""
