//! The running collector: lock, threads, shutdown.
