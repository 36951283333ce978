//! The engine, seen through `Plugin`, with a component that misbehaves on
//! request.

mod bounds;
mod cache;
mod capabilities;
mod contract;
mod isolation;
mod parking;
mod support;
