"""The source connector of a flow: topics of one cluster kept in another."""
