//! Drives the real binaries.
