//! What each name does.

extern crate alloc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use core::hint::black_box;

use crate::bindings::agent_teams::plugin::agent_runs::{Input, Runs};
use crate::bindings::agent_teams::plugin::types::{Caller, Error, ErrorKind, Outcome, Parked, Wake};
use crate::bindings::agent_teams::plugin::{connections, locks, log, settings, signals, storage};
use crate::bindings::wasi::clocks::wall_clock;
use crate::bindings::wasi::random::random;

pub fn refusal(kind: ErrorKind, code: &str) -> Error {
    let detail = (code == "with_detail").then(|| "{\"a\":1}".to_string());
    Error { kind, code: code.to_string(), message: "said the guest".to_string(), field: None, detail }
}

fn host_error(error: impl core::fmt::Debug) -> Error {
    Error { message: format!("{error:?}"), ..refusal(ErrorKind::Unavailable, "host_error") }
}

/// Debug text of a value, as a JSON string (no escapes but those that Rust
/// and JSON share are used here).
fn said(value: &str) -> Result<Outcome, Error> {
    Ok(Outcome::Done(format!("{value:?}")))
}

pub fn bind(owner: &str, team: &str, runs: &Runs) -> Result<(), Error> {
    connections::bind(owner, team, runs).map_err(host_error)
}

pub fn act(caller: &Caller, runs: Option<&Runs>, name: &str, payload: &str) -> Result<Outcome, Error> {
    let words: Vec<&str> = payload.split('|').collect();
    let word = |n: usize| words.get(n).copied().unwrap_or("");
    let number = |n: usize| word(n).parse::<u64>().unwrap_or(0);
    match name {
        // Well behaved.
        "echo" => said(&format!(
            "{} {} {} {} {} {payload}",
            caller.owner,
            caller.thread.as_deref().unwrap_or("-"),
            caller.ancestors.join(","),
            caller.run.as_deref().unwrap_or("-"),
            caller.call.as_deref().unwrap_or("-"),
        )),
        "refuse" => Err(refusal(ErrorKind::Conflict, word(0))),
        "settings" => said(&settings::get()),
        "now" => {
            let now = wall_clock::now();
            said(&format!("{}.{:09}", now.seconds, now.nanoseconds))
        }
        "random" => said(&format!("{:016x}", random::get_random_u64())),
        "put" => {
            let tx = storage::begin().map_err(host_error)?;
            tx.put(word(0), word(1)).map_err(host_error)?;
            storage::Transaction::commit(tx).map_err(host_error)?;
            said("put")
        }
        "get" => {
            let tx = storage::begin().map_err(host_error)?;
            said(&tx.get(word(0)).map_err(host_error)?)
        }
        "get-many" => {
            let tx = storage::begin().map_err(host_error)?;
            let keys: Vec<String> = words.iter().map(|w| w.to_string()).collect();
            let found: Vec<String> =
                tx.get_many(&keys).map_err(host_error)?.into_iter().map(Option::unwrap_or_default).collect();
            said(&found.join(","))
        }
        "scan" => {
            let tx = storage::begin().map_err(host_error)?;
            let found = tx.scan(word(0), word(1), number(2) as u32, false).map_err(host_error)?;
            let found: Vec<String> = found.into_iter().map(|e| format!("{}={}", e.key, e.value)).collect();
            said(&found.join(","))
        }
        "lock" => {
            let guard = locks::acquire(word(0), number(1) as u32).map_err(host_error)?;
            drop(guard);
            said("locked")
        }
        "bind" => {
            bind(word(0), word(1), runs.ok_or_else(|| refusal(ErrorKind::Denied, "no_runs"))?)?;
            said("bound")
        }
        "connected-run" => {
            let runs = connections::lookup(word(0), word(1)).map_err(host_error)?;
            start(&runs, word(2))
        }
        "run" => start(runs.ok_or_else(|| refusal(ErrorKind::Denied, "no_runs"))?, word(0)),
        "lock-run" => {
            let _guard = locks::acquire(word(1), 0).map_err(host_error)?;
            start(runs.ok_or_else(|| refusal(ErrorKind::Denied, "no_runs"))?, word(0))
        }
        "publish" => {
            signals::publish(&caller.owner, word(0), number(1));
            said("published")
        }
        // topic | timeout in ms | token: parks on the present position.
        "park" => Ok(park(word(0), signals::position(&caller.owner, word(0)), number(1), word(2))),
        // As if the topic moved between the look and the wait.
        "park-late" => {
            let seen = signals::position(&caller.owner, word(0));
            signals::publish(&caller.owner, word(0), 1);
            Ok(park(word(0), seen, number(1), word(2)))
        }
        // Misbehaviour.
        "panic" => panic!("on request, with a secret"),
        "recurse" => said(&format!("{}", recurse(number(0)))),
        "spin" => spin(),
        "hog" => {
            let mut held: Vec<Vec<u8>> = Vec::new();
            loop {
                held.push(black_box(vec![1; 1 << 20]));
            }
        }
        "lock-trap" => {
            let _guard = locks::acquire(word(0), 0).map_err(host_error)?;
            let tx = storage::begin().map_err(host_error)?;
            tx.put("dirty", "1").map_err(host_error)?;
            panic!("with a lock and an open transaction")
        }
        "lock-spin" => {
            let _guard = locks::acquire(word(0), 0).map_err(host_error)?;
            let tx = storage::begin().map_err(host_error)?;
            tx.put("dirty", "1").map_err(host_error)?;
            spin()
        }
        "not-json" => Ok(Outcome::Done("{".to_string())),
        "big-result" => {
            let mut text = "x".repeat(number(0) as usize);
            text.insert(0, '"');
            text.push('"');
            Ok(Outcome::Done(text))
        }
        "big-argument" => {
            log::write(log::Level::Debug, &"x".repeat(number(0) as usize));
            said("written")
        }
        // A string that says it is longer than the whole memory.
        "forged" => {
            let short = "x";
            // SAFETY: none, on purpose; only the host looks at it.
            let forged = unsafe { core::slice::from_raw_parts(short.as_ptr(), black_box(0x7000_0000)) };
            log::write(log::Level::Debug, unsafe { core::str::from_utf8_unchecked(forged) });
            said("written")
        }
        "hoard" => {
            let held: Vec<_> = (0..number(0)).map(|n| locks::acquire(&format!("hoard {n}"), 0)).collect();
            said(&format!("{}", held.len()))
        }
        "random-bytes" => said(&format!("{}", random::get_random_bytes(number(0)).len())),
        _ => Err(refusal(ErrorKind::NotFound, "no_such_behaviour")),
    }
}

/// Token `again|…` parks once more with the rest, `panic` panics.
pub fn resume(caller: &Caller, token: &str, wake: Wake) -> Result<Outcome, Error> {
    match token.split_once('~') {
        Some(("again", topic)) => Ok(park(topic, signals::position(&caller.owner, topic), 0, token)),
        _ if token == "panic" => panic!("on request"),
        _ => said(&format!("{} {token} {wake:?}", caller.owner)),
    }
}

fn park(topic: &str, seen: u64, timeout_ms: u64, token: &str) -> Outcome {
    Outcome::Park(Parked {
        topic: topic.to_string(),
        seen,
        timeout_ms: timeout_ms as u32,
        token: token.as_bytes().to_vec(),
    })
}

fn start(runs: &Runs, thread: &str) -> Result<Outcome, Error> {
    let input = Input {
        message_id: "m".to_string(),
        text: "hello".to_string(),
        context: String::new(),
        answers: None,
        provenance: "{}".to_string(),
        trace: None,
    };
    match runs.start(thread, &input, "key") {
        Ok(run) => said(&run.id),
        Err(error) => Err(host_error(error)),
    }
}

fn spin() -> ! {
    let mut n = 0u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

#[inline(never)]
fn recurse(n: u64) -> u64 {
    let page = black_box([n; 64]);
    if n == u64::MAX { 0 } else { page[(n % 64) as usize].wrapping_add(recurse(n + 1)) }
}
