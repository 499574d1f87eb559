"""Change data capture: what the connectors of all databases share. A database adds a decoder and a dialect."""
