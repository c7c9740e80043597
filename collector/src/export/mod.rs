//! Settled spans become OTLP and leave, from a durable position, once.
