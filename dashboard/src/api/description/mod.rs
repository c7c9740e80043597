//! What a handler takes and answers, for the API's description.
//!
//! [`Described`] reads a handler's signature: each argument is an [`Input`], the answer an [`Output`], and their types have
//! a JSON Schema (schemars, from the same declarations that serde reads).

mod index;
mod operation;

pub(super) use index::{Index, index};
pub(super) use operation::{Described, Input, Operation, Output};
