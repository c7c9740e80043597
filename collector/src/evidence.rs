//! Looks on disk for proof of which parent a child conversation has: transcript folders, read-only and bounded.
