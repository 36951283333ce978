//! From the component's bytes to something that can be instantiated: the
//! Wasmtime engine, compilation, and the check of the contract's version.

use semver::Version;
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::bindings::PluginPre;
use super::cache::Cache;
use super::capabilities::State;
use super::limits::{CORE_INSTANCES, MEMORIES, TABLE_ELEMENTS, TABLES};
use super::{LoadError, Options};

/// The contract's version that this host was built with.
pub const CONTRACT: &str = env!("AGENT_TEAMS_CONTRACT");
/// The contract's package.
const PACKAGE: &str = "agent-teams:plugin";

/// Linear memory that stays mapped in a slot between two calls: as much as an
/// ordinary call touches, so that it meets no page fault.
const KEEP_MEMORY: usize = 4 << 20;
const KEEP_STACK: usize = 128 << 10;
const KEEP_TABLE: usize = 16 << 10;

/// Makes the one engine of a plugin.
pub fn engine(options: &Options) -> Result<Engine, LoadError> {
    let mut config = Config::new();
    config.epoch_interruption(true);
    // A trap in a shared instance would hurt its neighbours: one instance a
    // call, so nothing in it runs at once.
    config.concurrency_support(false);

    let mut pooled = config.clone();
    pooled.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(options)));
    match Engine::new(&pooled) {
        Ok(engine) => Ok(engine),
        Err(error) => {
            // Slots are reserved as address space, which a system may limit.
            tracing::warn!("no pool of instances ({error:#}): each call maps its own memory, which is slower");
            Engine::new(&config).map_err(LoadError::engine)
        }
    }
}

/// A slot for each instance, tuned so that a call makes no system call for
/// memory. Without it the engine loses throughput with a second thread.
fn pool(options: &Options) -> PoolingAllocationConfig {
    let instances = options.places();
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(CORE_INSTANCES))
        .total_memories(instances.saturating_mul(MEMORIES))
        .total_tables(instances.saturating_mul(TABLES))
        .total_stacks(instances)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .table_elements(TABLE_ELEMENTS)
        .max_memory_size(options.memory)
        .max_unused_warm_slots(instances)
        .linear_memory_keep_resident(KEEP_MEMORY.min(options.memory))
        .table_keep_resident(KEEP_TABLE)
        .async_stack_keep_resident(KEEP_STACK)
        // Linux 6.7 and newer tell which pages a call has touched.
        .pagemap_scan(Enabled::Auto);
    pool
}

/// Compiles the component, or takes its code from the cache, and links it.
/// A component of another contract version is refused before it is linked.
pub fn load(engine: &Engine, bytes: &[u8], options: &Options) -> Result<PluginPre<State>, LoadError> {
    let cache = options.cache.as_deref().map(|folder| Cache::new(folder, engine, bytes));
    let cached = cache.as_ref().and_then(|cache| cache.load(engine));
    let component = match cached {
        Some(component) => component,
        None => {
            let component = Component::new(engine, bytes).map_err(LoadError::component)?;
            if let Some(cache) = &cache {
                cache.store(&component);
            }
            component
        }
    };
    check_contract(engine, &component)?;
    let mut linker = Linker::new(engine);
    super::bindings::Plugin::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut State| state)
        .map_err(LoadError::engine)?;
    let pre = linker.instantiate_pre(&component).map_err(LoadError::component)?;
    PluginPre::new(pre).map_err(LoadError::component)
}

/// Every interface of the contract that the component names must be one that
/// this host has.
fn check_contract(engine: &Engine, component: &Component) -> Result<(), LoadError> {
    let ty = component.component_type();
    let names = ty.exports(engine).map(|(name, _)| name).chain(ty.imports(engine).map(|(name, _)| name));
    let mut found = false;
    for name in names {
        let Some(rest) = name.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('/')) else { continue };
        let version = rest.split_once('@').map_or("no version", |(_, version)| version);
        if !loads(version) {
            return Err(LoadError::Contract { component: version.to_owned(), host: CONTRACT });
        }
        found = true;
    }
    if found { Ok(()) } else { Err(LoadError::NotAPlugin) }
}

/// Whether this host has a contract of that version: a release of the same
/// minor line that is not newer than its own. A draft fits only itself.
fn loads(component: &str) -> bool {
    match (Version::parse(component), Version::parse(CONTRACT)) {
        (Ok(component), Ok(host)) => fits(&component, &host),
        _ => false,
    }
}

fn fits(component: &Version, host: &Version) -> bool {
    let released = component.pre.is_empty() && host.pre.is_empty();
    let line = |version: &Version| (version.major, version.minor);
    component == host || (released && line(component) == line(host) && component <= host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_of_the_same_minor_line_loads_unless_it_is_newer() {
        let fits = |component: &str, host: &str| {
            super::fits(&Version::parse(component).unwrap(), &Version::parse(host).unwrap())
        };
        for (component, host, loads) in [
            ("0.2.0", "0.2.0", true),
            ("0.2.0", "0.2.3", true),
            ("0.2.4", "0.2.3", false),
            ("0.1.0", "0.2.0", false),
            ("0.3.0", "0.2.9", false),
            ("1.2.0", "0.2.0", false),
            ("0.2.0-draft", "0.2.0-draft", true),
            ("0.2.0-draft", "0.2.0", false),
            ("0.2.0", "0.2.1-draft", false),
            ("0.2.0-other", "0.2.0-draft", false),
        ] {
            assert_eq!(fits(component, host), loads, "{component} in {host}");
        }
    }

    #[test]
    fn the_contract_is_that_of_the_wit_package() {
        let world = include_str!("../../../wit/world.wit");
        assert!(world.contains(&format!("package {PACKAGE}@{CONTRACT};")));
    }

    #[test]
    fn a_component_without_the_contract_is_no_plugin() {
        // The header of an empty component.
        let empty = b"\0asm\x0d\0\x01\0";
        let options = Options { instances: 1, ..Options::default() };
        let refused = load(&engine(&options).unwrap(), empty, &options).err().unwrap();
        assert!(matches!(refused, LoadError::NotAPlugin), "{refused}");
    }
}
