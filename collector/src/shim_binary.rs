//! The hook program this binary carries, and how it is put in place.
