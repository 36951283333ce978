//! One command a file: what people and members ask for.

pub mod cancel;
pub mod connect;
pub mod create;
pub mod delete;
pub mod get;
pub mod history;
pub mod import_team;
pub mod list;
pub mod mention;
pub mod open;
pub mod operator;
pub mod publish_state;
pub mod read_context;
pub mod read_result;
pub mod read_state;
pub mod results;
pub mod resume;
pub mod search;
pub mod search_results;
pub mod send;
pub mod settle;
pub mod update_state;
