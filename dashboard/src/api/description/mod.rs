//! What a handler takes and returns, for the API's description.
//!
//! [`Described`] reads a handler's signature. Each argument is an [`Input`], and the answer is an [`Output`]. Their
//! types have a JSON Schema (by schemars, from the declarations that serde reads).

mod index;
mod operation;

pub(super) use index::{Index, index};
pub(super) use operation::{Described, Input, Operation, Output};
