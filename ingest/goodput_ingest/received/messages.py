"""Classes of protobuf messages from a table of the fields that are used: no package brings them."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_TYPES: Final = {
    "double": _FIELD.TYPE_DOUBLE,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "string": _FIELD.TYPE_STRING,
}
_MESSAGES: Final[Mapping[str, Sequence[tuple[str, int, str]]]] = {  # name, number, type
    # remote-write 1.0; a message among the fields is repeated
    "Label": [("name", 1, "string"), ("value", 2, "string")],
    "Sample": [("value", 1, "double"), ("timestamp", 2, "int64")],
    "Histogram": [],
    "TimeSeries": [
        ("labels", 1, "Label"),
        ("samples", 2, "Sample"),
        ("histograms", 4, "Histogram"),
    ],
    "WriteRequest": [("timeseries", 1, "TimeSeries")],
    # google.rpc.Status, of OTLP's errors
    "Status": [("code", 1, "int32"), ("message", 2, "string")],
}


@cache
def message_class(name: str) -> Any:
    """Return the class of a message of the table."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(name))


@cache
def _pool() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="received.proto", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            one = message.field.add(name=field, number=number, label=_FIELD.LABEL_OPTIONAL)
            if kind in _TYPES:
                one.type = _TYPES[kind]
            else:
                one.type, one.type_name = _FIELD.TYPE_MESSAGE, f".{kind}"
                one.label = _FIELD.LABEL_REPEATED
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool
