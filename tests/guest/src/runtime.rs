//! What a component without the standard library must bring along.

extern crate alloc;

use alloc::format;
use core::alloc::Layout;

use crate::bindings::agent_teams::plugin::log;

#[path = "../../../plugin/src/allocator.rs"]
mod allocator;

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    log::write(log::Level::Error, &format!("{info}"));
    core::arch::wasm32::unreachable()
}

/// Memory for what the host hands in.
///
/// # Safety
/// Called by the host only, with a block that an earlier call returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cabi_realloc(old: *mut u8, old_len: usize, align: usize, len: usize) -> *mut u8 {
    if old_len == 0 && len == 0 {
        return align as *mut u8;
    }
    // SAFETY: the contract above; `align` is one that the canonical ABI uses.
    let block = unsafe {
        if old_len == 0 {
            alloc::alloc::alloc(Layout::from_size_align_unchecked(len, align))
        } else {
            alloc::alloc::realloc(old, Layout::from_size_align_unchecked(old_len, align), len)
        }
    };
    if block.is_null() { core::arch::wasm32::unreachable() } else { block }
}
