//! OTLP backends.
