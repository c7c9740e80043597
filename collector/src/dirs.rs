//! The state directory: where it is, what lies in it, who may read it.
