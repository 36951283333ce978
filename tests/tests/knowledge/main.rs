//! What a team knows: public state, history, results, mentions, isolation, and
//! teams of an earlier plugin.

mod desk;
mod history_pages;
mod import_legacy;
mod isolation;
mod mention_dispatch;
mod results;
mod state_context;
mod state_public;
mod successor;
mod tool_schemas;
