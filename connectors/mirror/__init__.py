"""Topics, groups and settings of one Kafka cluster kept in another, with the keys, names and bytes of MirrorMaker 2."""
