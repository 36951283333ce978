//! What the tests from outside share.

pub mod sim;
