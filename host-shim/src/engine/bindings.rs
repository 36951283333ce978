//! The contract as Wasmtime sees it: the only place where the host generates
//! code from `wit/`.

wasmtime::component::bindgen!({
    path: "../wit",
    world: "plugin",
    imports: {
        "agent-teams:plugin/storage.[static]transaction.commit": async | trappable,
        "agent-teams:plugin/locks.acquire": async | trappable,
        "agent-teams:plugin/agent-runs": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    with: {
        "agent-teams:plugin/storage.transaction": crate::engine::resources::OpenTransaction,
        "agent-teams:plugin/locks.guard": crate::engine::lock_table::Guard,
        "agent-teams:plugin/agent-runs.runs": crate::engine::resources::Runs,
    },
});
