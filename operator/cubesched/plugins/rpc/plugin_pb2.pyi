from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Capability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CAPABILITY_UNSPECIFIED: _ClassVar[Capability]
    CAPABILITY_FILTER: _ClassVar[Capability]
    CAPABILITY_SCORE: _ClassVar[Capability]
    CAPABILITY_SNAPSHOT_REFERENCES: _ClassVar[Capability]
CAPABILITY_UNSPECIFIED: Capability
CAPABILITY_FILTER: Capability
CAPABILITY_SCORE: Capability
CAPABILITY_SNAPSHOT_REFERENCES: Capability

class HandshakeRequest(_message.Message):
    __slots__ = ("protocol_version", "client", "encodings")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    ENCODINGS_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    client: str
    encodings: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, protocol_version: _Optional[int] = ..., client: _Optional[str] = ..., encodings: _Optional[_Iterable[int]] = ...) -> None: ...

class HandshakeReply(_message.Message):
    __slots__ = ("protocol_version", "name", "capabilities", "filters", "scores", "max_message_bytes")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    name: str
    capabilities: _containers.RepeatedScalarFieldContainer[Capability]
    filters: _containers.RepeatedScalarFieldContainer[str]
    scores: _containers.RepeatedScalarFieldContainer[str]
    max_message_bytes: int
    def __init__(self, protocol_version: _Optional[int] = ..., name: _Optional[str] = ..., capabilities: _Optional[_Iterable[_Union[Capability, str]]] = ..., filters: _Optional[_Iterable[str]] = ..., scores: _Optional[_Iterable[str]] = ..., max_message_bytes: _Optional[int] = ...) -> None: ...

class Facts(_message.Message):
    __slots__ = ("facts_version", "nodes", "names", "strings", "ip", "zone", "instance_type", "cpu_total", "quota_cpu", "mem_total_mb", "quota_mem_mb", "labels", "templates", "taint_set", "taint_sets")
    FACTS_VERSION_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    IP_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    CPU_TOTAL_FIELD_NUMBER: _ClassVar[int]
    QUOTA_CPU_FIELD_NUMBER: _ClassVar[int]
    MEM_TOTAL_MB_FIELD_NUMBER: _ClassVar[int]
    QUOTA_MEM_MB_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    TEMPLATES_FIELD_NUMBER: _ClassVar[int]
    TAINT_SET_FIELD_NUMBER: _ClassVar[int]
    TAINT_SETS_FIELD_NUMBER: _ClassVar[int]
    facts_version: int
    nodes: int
    names: Strings
    strings: Strings
    ip: bytes
    zone: bytes
    instance_type: bytes
    cpu_total: bytes
    quota_cpu: bytes
    mem_total_mb: bytes
    quota_mem_mb: bytes
    labels: _containers.RepeatedCompositeFieldContainer[Label]
    templates: _containers.RepeatedCompositeFieldContainer[Template]
    taint_set: bytes
    taint_sets: _containers.RepeatedCompositeFieldContainer[TaintSet]
    def __init__(self, facts_version: _Optional[int] = ..., nodes: _Optional[int] = ..., names: _Optional[_Union[Strings, _Mapping]] = ..., strings: _Optional[_Union[Strings, _Mapping]] = ..., ip: _Optional[bytes] = ..., zone: _Optional[bytes] = ..., instance_type: _Optional[bytes] = ..., cpu_total: _Optional[bytes] = ..., quota_cpu: _Optional[bytes] = ..., mem_total_mb: _Optional[bytes] = ..., quota_mem_mb: _Optional[bytes] = ..., labels: _Optional[_Iterable[_Union[Label, _Mapping]]] = ..., templates: _Optional[_Iterable[_Union[Template, _Mapping]]] = ..., taint_set: _Optional[bytes] = ..., taint_sets: _Optional[_Iterable[_Union[TaintSet, _Mapping]]] = ...) -> None: ...

class Strings(_message.Message):
    __slots__ = ("text", "ends")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    text: bytes
    ends: bytes
    def __init__(self, text: _Optional[bytes] = ..., ends: _Optional[bytes] = ...) -> None: ...

class Label(_message.Message):
    __slots__ = ("key", "values")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    key: str
    values: bytes
    def __init__(self, key: _Optional[str] = ..., values: _Optional[bytes] = ...) -> None: ...

class Template(_message.Message):
    __slots__ = ("id", "nodes")
    ID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    id: str
    nodes: bytes
    def __init__(self, id: _Optional[str] = ..., nodes: _Optional[bytes] = ...) -> None: ...

class Taint(_message.Message):
    __slots__ = ("key", "value", "effect")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    effect: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ..., effect: _Optional[str] = ...) -> None: ...

class TaintSet(_message.Message):
    __slots__ = ("taints",)
    TAINTS_FIELD_NUMBER: _ClassVar[int]
    taints: _containers.RepeatedCompositeFieldContainer[Taint]
    def __init__(self, taints: _Optional[_Iterable[_Union[Taint, _Mapping]]] = ...) -> None: ...

class State(_message.Message):
    __slots__ = ("snapshot_version", "facts_version", "encoding", "healthy", "snapshot_storage_writable", "cpu_util", "cpu_load", "data_disk_usage", "storage_disk_usage", "system_disk_usage", "mem_usage_mb", "allocated_cpu", "allocated_mem_mb", "creating", "local_creating", "mvm_num")
    SNAPSHOT_VERSION_FIELD_NUMBER: _ClassVar[int]
    FACTS_VERSION_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    HEALTHY_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_STORAGE_WRITABLE_FIELD_NUMBER: _ClassVar[int]
    CPU_UTIL_FIELD_NUMBER: _ClassVar[int]
    CPU_LOAD_FIELD_NUMBER: _ClassVar[int]
    DATA_DISK_USAGE_FIELD_NUMBER: _ClassVar[int]
    STORAGE_DISK_USAGE_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_DISK_USAGE_FIELD_NUMBER: _ClassVar[int]
    MEM_USAGE_MB_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_CPU_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_MEM_MB_FIELD_NUMBER: _ClassVar[int]
    CREATING_FIELD_NUMBER: _ClassVar[int]
    LOCAL_CREATING_FIELD_NUMBER: _ClassVar[int]
    MVM_NUM_FIELD_NUMBER: _ClassVar[int]
    snapshot_version: int
    facts_version: int
    encoding: int
    healthy: bytes
    snapshot_storage_writable: bytes
    cpu_util: bytes
    cpu_load: bytes
    data_disk_usage: bytes
    storage_disk_usage: bytes
    system_disk_usage: bytes
    mem_usage_mb: bytes
    allocated_cpu: bytes
    allocated_mem_mb: bytes
    creating: bytes
    local_creating: bytes
    mvm_num: bytes
    def __init__(self, snapshot_version: _Optional[int] = ..., facts_version: _Optional[int] = ..., encoding: _Optional[int] = ..., healthy: _Optional[bytes] = ..., snapshot_storage_writable: _Optional[bytes] = ..., cpu_util: _Optional[bytes] = ..., cpu_load: _Optional[bytes] = ..., data_disk_usage: _Optional[bytes] = ..., storage_disk_usage: _Optional[bytes] = ..., system_disk_usage: _Optional[bytes] = ..., mem_usage_mb: _Optional[bytes] = ..., allocated_cpu: _Optional[bytes] = ..., allocated_mem_mb: _Optional[bytes] = ..., creating: _Optional[bytes] = ..., local_creating: _Optional[bytes] = ..., mvm_num: _Optional[bytes] = ...) -> None: ...

class Request(_message.Message):
    __slots__ = ("instance_type", "template_id", "cpu_millis", "memory_bytes", "system_disk_size", "priority", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    INSTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_ID_FIELD_NUMBER: _ClassVar[int]
    CPU_MILLIS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_DISK_SIZE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    instance_type: str
    template_id: str
    cpu_millis: int
    memory_bytes: int
    system_disk_size: int
    priority: int
    labels: _containers.ScalarMap[str, str]
    def __init__(self, instance_type: _Optional[str] = ..., template_id: _Optional[str] = ..., cpu_millis: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., system_disk_size: _Optional[int] = ..., priority: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class FilterRequest(_message.Message):
    __slots__ = ("plugin", "request", "rows", "client", "snapshot_version", "facts", "state")
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_VERSION_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    plugin: str
    request: Request
    rows: bytes
    client: str
    snapshot_version: int
    facts: Facts
    state: State
    def __init__(self, plugin: _Optional[str] = ..., request: _Optional[_Union[Request, _Mapping]] = ..., rows: _Optional[bytes] = ..., client: _Optional[str] = ..., snapshot_version: _Optional[int] = ..., facts: _Optional[_Union[Facts, _Mapping]] = ..., state: _Optional[_Union[State, _Mapping]] = ...) -> None: ...

class FilterReply(_message.Message):
    __slots__ = ("snapshot_version", "rows", "keep")
    SNAPSHOT_VERSION_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    snapshot_version: int
    rows: bytes
    keep: bytes
    def __init__(self, snapshot_version: _Optional[int] = ..., rows: _Optional[bytes] = ..., keep: _Optional[bytes] = ...) -> None: ...

class ScoreRequest(_message.Message):
    __slots__ = ("plugin", "request", "rows", "client", "snapshot_version", "facts", "state")
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_VERSION_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    plugin: str
    request: Request
    rows: bytes
    client: str
    snapshot_version: int
    facts: Facts
    state: State
    def __init__(self, plugin: _Optional[str] = ..., request: _Optional[_Union[Request, _Mapping]] = ..., rows: _Optional[bytes] = ..., client: _Optional[str] = ..., snapshot_version: _Optional[int] = ..., facts: _Optional[_Union[Facts, _Mapping]] = ..., state: _Optional[_Union[State, _Mapping]] = ...) -> None: ...

class ScoreReply(_message.Message):
    __slots__ = ("snapshot_version", "rows", "scores", "not_applicable")
    SNAPSHOT_VERSION_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    NOT_APPLICABLE_FIELD_NUMBER: _ClassVar[int]
    snapshot_version: int
    rows: bytes
    scores: bytes
    not_applicable: bool
    def __init__(self, snapshot_version: _Optional[int] = ..., rows: _Optional[bytes] = ..., scores: _Optional[bytes] = ..., not_applicable: _Optional[bool] = ...) -> None: ...
