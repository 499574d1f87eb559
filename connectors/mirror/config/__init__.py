"""The options of the connectors of a flow, with the keys and the checks of MirrorMaker 2."""
