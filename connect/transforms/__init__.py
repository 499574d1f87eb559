"""The single message transformations, one in each module, the predicates, and the base classes for more of them.

A transformation for the key or the value is a :class:`KeyOrValueTransformation`; one that needs nothing else of the
record is a :class:`ValueTransformation`, which also works by column.
"""

from connect.transforms.fields.key_or_value import Change, KeyOrValueTransformation, ValueTransformation

__all__ = ["Change", "KeyOrValueTransformation", "ValueTransformation"]
