//! What a guest holds by a handle. (Held locks are in [`super::lock_table`].)

use crate::agents::runs::Capability;
use crate::storage::Transaction;

/// An open transaction. Dropping it undoes everything.
pub struct OpenTransaction(pub Box<dyn Transaction>);

/// A capability in the hands of a guest: its own (from a lookup) or lent for
/// one call.
pub struct Runs(pub Capability);
