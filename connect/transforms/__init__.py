"""The single message transformations, one per module, the predicates, and base classes for writing more of them.

A transformation of the key or the value is a :class:`KeyOrValueTransformation`. One that needs nothing else of the
record is a :class:`ValueTransformation`, which also works by column.
"""

from connect.transforms.fields.key_or_value import Change, KeyOrValueTransformation, ValueTransformation

__all__ = ["Change", "KeyOrValueTransformation", "ValueTransformation"]
