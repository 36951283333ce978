//! What several rooms need: who calls, how things look from outside, the first
//! job of a conversation, idempotency of calls.

pub mod args;
pub mod board_digest;
pub mod calling_member;
pub mod change;
pub mod damaged;
pub mod deleted_team;
pub mod heads;
pub mod idempotency;
pub mod object;
pub mod owned_teams;
pub mod paging;
pub mod public_state;
pub mod settling;
pub mod team_arg;
pub mod team_context;
pub mod turn;
pub mod view;
pub mod write_off;
