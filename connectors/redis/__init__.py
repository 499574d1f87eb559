"""Redis and Valkey: sinks for every data structure, and sources of streams and of keys that change."""

from connectors.redis.cache_config import RedisCacheSinkConfig
from connectors.redis.keys_config import RedisKeysSourceConfig
from connectors.redis.keys_source import RedisKeysSourceConnector, RedisKeysSourceTask
from connectors.redis.sink import RedisCacheSinkConnector, RedisCacheSinkTask, RedisSinkConnector, RedisSinkTask
from connectors.redis.sink_config import RedisSinkConfig
from connectors.redis.stream_config import RedisStreamSourceConfig
from connectors.redis.stream_source import RedisStreamSourceConnector, RedisStreamSourceTask

__all__ = [
    "RedisCacheSinkConfig",
    "RedisCacheSinkConnector",
    "RedisCacheSinkTask",
    "RedisKeysSourceConfig",
    "RedisKeysSourceConnector",
    "RedisKeysSourceTask",
    "RedisSinkConfig",
    "RedisSinkConnector",
    "RedisSinkTask",
    "RedisStreamSourceConfig",
    "RedisStreamSourceConnector",
    "RedisStreamSourceTask",
]
