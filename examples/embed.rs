//! A host in a few lines: it loads the component, lends it a store in memory
//! and calls it. It has no agents, so its teams cannot work; `agent-host.rs`
//! adds them.
//!
//! ```sh
//! cargo run --release --example embed
//! ```

use std::sync::Arc;

use agent_teams_host::contract::Caller;
use agent_teams_host::engine::{Options, Parts, Plugin, Signals, SystemClock};
use agent_teams_host::storage::MemoryStore;

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let parts = Parts {
        store: Arc::new(MemoryStore::new()),
        signals: Arc::new(Signals::default()),
        settings: "{}".into(),
        clock: Arc::new(SystemClock),
    };
    // The component that was built with this library. Any other component of
    // the same contract version works as well: give the bytes of its file.
    let plugin = Plugin::load(Plugin::embedded(), parts, Options::default())?;
    plugin.open().await?;

    let info = plugin.info().await?;
    println!("{} {}, contract {}, store format {}", info.name, info.version, info.contract, info.store_format);
    for tool in plugin.tools("full").await? {
        println!("  tool {}", tool.name);
    }

    // Who calls is what the host has authenticated; here, the user "ann".
    let teams = plugin.call_action(Caller::owner("ann"), None, "list", "{}").await?;
    println!("teams of ann: {teams}");

    // A refusal is a value with a stable code and a sentence that says what to do.
    let refused = plugin.call_action(Caller::owner("ann"), None, "get", r#"{"team_id":"none"}"#).await;
    println!("a team that does not exist: {}", refused.expect_err("refused"));

    plugin.shutdown().await;
    Ok(())
}
