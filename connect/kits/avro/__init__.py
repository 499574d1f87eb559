"""Avro's schemas and values as Connect's, with the meaning that Confluent's AvroConverter gives them."""
