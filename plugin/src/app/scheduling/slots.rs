//! The slots of the deployment, as those who wait see them.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::app::settings::settings;
use crate::app::shared::heads;
use crate::app::{Ctx, topic};
use crate::domain::error::Result;
use crate::host::Host;
use crate::store::records::{Head, Need, Slot};
use crate::store::{Db, keys, parse, read, readable};

/// Whether all slots of the deployment are taken while a job waits for one.
pub fn starved(ctx: Ctx, db: &Db) -> Result<bool> {
    let slots = settings(ctx.host)?.slots;
    if db.scan_prefix(keys::slots(), slots)?.len() < slots as usize {
        return Ok(false);
    }
    let now = ctx.now();
    let waits = |head: &heads::HeadWork| {
        head.work.need == Need::Slot
            && head.work.next_at <= now
            && ctx.host.lookup(&head.owner, &head.work.team).is_some()
    };
    Ok(heads::heads(db, keys::work())?.list.iter().any(waits))
}

/// Wakes the waits of an owner's teams that hold slots, if every slot is taken:
/// one of them may be what a queued job waits for. Called after a job was queued
/// or admitted. A hint: each wait looks by itself, too. Other owners' teams are
/// not woken: their pages would see when this owner has work.
pub fn wake_waiters(host: &dyn Host, owner: &str) {
    let found = settings(host).and_then(|settings| {
        read(host, |db| {
            let slots = db.scan_prefix(keys::slots(), settings.slots)?;
            if slots.len() < settings.slots as usize {
                return Ok(Vec::new());
            }
            let mut teams = BTreeSet::new();
            for (key, value) in slots {
                teams.extend(readable(parse::<Slot>(&key, &value))?.filter(|s| s.owner == owner).map(|s| s.team));
            }
            let mut out = Vec::new();
            for team in teams {
                let head = readable(db.get::<Head>(&keys::TeamKeys::new(owner, &team).head()))?;
                out.extend(head.flatten().map(|head| (team, head.revision)));
            }
            Ok(out)
        })
    });
    for (team, revision) in found.unwrap_or_default() {
        host.publish(owner, &topic(&team), revision);
    }
}
