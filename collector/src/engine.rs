//! One thread that owns the fold and the write connection.
