//! What a component without the standard library needs: an allocator, the
//! canonical ABI's allocation function, and a panic that reaches the log.

use alloc::alloc::{Layout, alloc, realloc};
use alloc::format;

use crate::bindings::agent_teams::plugin::log;

/// A panic ends this call alone: the host drops the instance.
#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    log::write(log::Level::Error, &format!("{info}"));
    core::arch::wasm32::unreachable()
}

/// Allocates for values that the host hands over.
///
/// # Safety
/// Called by the canonical ABI alone, with a pointer that this function gave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cabi_realloc(old: *mut u8, old_len: usize, align: usize, new_len: usize) -> *mut u8 {
    if old_len == 0 && new_len == 0 {
        return align as *mut u8;
    }
    // SAFETY: the ABI gives a valid alignment, and `old` came from here with
    // `old_len` bytes of it.
    let pointer = unsafe {
        if old_len == 0 {
            alloc(Layout::from_size_align_unchecked(new_len, align))
        } else {
            realloc(old, Layout::from_size_align_unchecked(old_len, align), new_len)
        }
    };
    if pointer.is_null() {
        core::arch::wasm32::unreachable()
    }
    pointer
}
