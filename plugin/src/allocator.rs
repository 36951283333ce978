//! The component's allocator.

use core::alloc::Layout;

// The C library that the target brings along, also for its start-up code.
#[link(name = "c")]
unsafe extern "C" {
    fn malloc(len: usize) -> *mut u8;
    fn aligned_alloc(align: usize, len: usize) -> *mut u8;
    fn realloc(block: *mut u8, len: usize) -> *mut u8;
    fn free(block: *mut u8);
}

/// libc's allocator. It starts in the memory that an instance begins with, so
/// that an ordinary call grows nothing: growing costs system calls, and every
/// call is a fresh instance.
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
