"""The single message transformations, one a module, the predicates, and what to write more of them with.

A transformation for the key or the value is a :class:`KeyOrValueTransformation`; one that looks at nothing else is a
:class:`ValueTransformation` and gets its column path for nothing.
"""

from connect.transforms.fields.key_or_value import Change, KeyOrValueTransformation, ValueTransformation

__all__ = ["Change", "KeyOrValueTransformation", "ValueTransformation"]
