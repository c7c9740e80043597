//! The journal as its reader sees it: segments, frames, records, rotation.
