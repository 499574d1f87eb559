"""What several families of connectors and converters need, and no user imports."""
