//! What one request may make the gateway allocate, measured.
//!
//! One test in a process of its own: the count is of the whole process.

#[allow(dead_code, reason = "this test uses a part of it")]
#[path = "http_gateway/client.rs"]
mod client;
#[allow(dead_code, reason = "this test uses a part of it")]
#[path = "http_gateway/fakes.rs"]
mod fakes;
#[allow(dead_code, reason = "this test uses a part of it")]
#[path = "http_gateway/server.rs"]
mod server;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use client::Stream;
use server::Server;

/// The system's allocator, counting.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: everything is the system allocator's own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // As if both were there for a moment, which they may be.
        more(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The largest body of an import.
const LARGEST: usize = 8 << 20;

/// `{"a": <open> <item>, <item> … <close>}` of the largest size.
fn body(open: &str, item: impl Fn(usize) -> String, close: &str) -> String {
    let mut text = format!("{{\"a\":{open}");
    for n in 0.. {
        let item = item(n);
        if text.len() + item.len() + close.len() + 2 > LARGEST {
            break;
        }
        if n > 0 {
            text.push(',');
        }
        text.push_str(&item);
    }
    text + close + "}"
}

#[tokio::test]
async fn a_large_body_costs_a_small_multiple_of_its_size() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    let text = "x".repeat(80);
    for (what, body, status) in [
        ("numbers", body("[", |_| "0".into(), "]"), 200),
        ("lists", body("[", |_| "[]".into(), "]"), 200),
        ("objects", body("[", |_| "{\"a\":0}".into(), "]"), 200),
        ("texts", body("[", |_| format!("\"{text}\""), "]"), 200),
        ("members", body("{", |n| format!("\"{n}\":0"), "}"), 400),
        ("escaped members", body("{", |n| format!("\"\\u0061{n}\":0"), "}"), 400),
    ] {
        let request = s.action("import_team").bearer(&token).header("content-length", &body.len().to_string());
        let head = request.text("application/json", "").bytes();
        let mut socket = TcpStream::connect(s.addr).await.unwrap();
        PEAK.store(NOW.load(Ordering::Relaxed), Ordering::Relaxed);
        let before = NOW.load(Ordering::Relaxed);
        socket.write_all(&head).await.unwrap();
        let _ = socket.write_all(body.as_bytes()).await;
        let answer = Stream::read_head(socket).await.rest().await;
        assert_eq!(answer.status, status, "{what}");
        let peak = PEAK.load(Ordering::Relaxed) - before;
        assert!(peak < 6 * LARGEST, "{what}: {} MiB at once for a body of {} MiB", peak >> 20, LARGEST >> 20);
    }
}
