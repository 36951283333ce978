//! What a component without the standard library must bring along.

use alloc::format;
use core::alloc::Layout;

use crate::bindings::agent_teams::plugin::log;

extern crate alloc;

#[link(name = "c")]
unsafe extern "C" {
    fn malloc(len: usize) -> *mut u8;
    fn aligned_alloc(align: usize, len: usize) -> *mut u8;
    fn realloc(block: *mut u8, len: usize) -> *mut u8;
    fn free(block: *mut u8);
}

/// libc's allocator: it starts in the memory that an instance begins with, so
/// that an ordinary call grows nothing.
struct Libc;

/// What `malloc` aligns to.
const MALLOC_ALIGN: usize = 16;

// SAFETY: libc's allocator keeps the contract of `GlobalAlloc`; what it does
// not align by itself goes through `aligned_alloc`.
unsafe impl core::alloc::GlobalAlloc for Libc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe {
            if layout.align() <= MALLOC_ALIGN {
                malloc(layout.size())
            } else {
                aligned_alloc(layout.align(), layout.size().next_multiple_of(layout.align()))
            }
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        unsafe { free(block) }
    }

    unsafe fn realloc(&self, block: *mut u8, old: Layout, len: usize) -> *mut u8 {
        if old.align() <= MALLOC_ALIGN {
            return unsafe { realloc(block, len) };
        }
        // SAFETY: the caller's `len`, rounded up to the alignment, fits.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(len, old.align()));
            if !new.is_null() {
                core::ptr::copy_nonoverlapping(block, new, old.size().min(len));
                free(block);
            }
            new
        }
    }
}

#[global_allocator]
static ALLOCATOR: Libc = Libc;

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
