//! The task board from outside: natively, and as the component in its engine.
//! The numbers in the tests' names are the rows that they hold.

mod cost;
mod history;
mod import;
mod matrix;
mod oracle;
mod races;
mod replay;
mod rows;
mod steps;
mod support;
mod texts;
mod tools;
mod views;
mod waits;
mod waits_engine;
