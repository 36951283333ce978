//! The component's side of the contract: generated traits on one hand, the
//! application on the other, and nothing but mapping between them.

mod exports;
mod imports;
