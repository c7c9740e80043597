//! hookspan's own traces and metrics, off unless asked for.
