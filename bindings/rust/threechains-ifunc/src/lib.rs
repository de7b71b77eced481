// SPDX-License-Identifier: Apache-2.0
//! What an ifunc written in Rust stands on: the entry point and the ifunc ABI (`<threechains/ifunc.h>`), without std.
//!
//! ```ignore
//! #![no_std]
//! use threechains_ifunc::{ifunc, reply};
//!
//! ifunc! {
//!     fn hello_main(payload: &mut [u8]) {
//!         let _ = reply(payload);
//!     }
//! }
//! ```
//!
//! `ifunc build hello.rs` makes `hello.ifunc`. A panic (an index out of bounds, a division by zero, `unwrap()` of
//! `None`) ends the call as `tc_fail()` does, with a code and the line; it never ends the node, and needs no panic
//! handler. Destructors do not run then: what the ifunc changed in the target's data before stays changed.
//!
//! Every function here is for the thread that the ifunc was called on, while it runs, and copies the bytes given to it.
//! Texts are literals: the macros put the NUL behind them that the ABI wants.
#![no_std]

use core::ffi::c_void;

/// The functions of the ABI as they are.
pub mod abi {
    use core::ffi::c_void;
    extern "C" {
        pub fn tc_id() -> u32;
        pub fn tc_count() -> u32;
        pub fn tc_data(name: *const u8, size: *mut usize) -> *mut c_void;
        pub fn tc_reply(bytes: *const c_void, size: usize) -> i32;
        pub fn tc_forward(node: u32, payload: *const c_void, size: usize) -> i32;
        pub fn tc_forward_as(node: u32, name: *const u8, payload: *const c_void, size: usize) -> i32;
        pub fn tc_inject(node: u32, name: *const u8, payload: *const c_void, size: usize) -> i32;
        pub fn tc_fail(code: i32, message: *const u8);
        pub fn tc_log(level: i32, message: *const u8);
    }
}

/// Arithmetic of floating-point numbers that may be done in any order and fused, so that sums become vectors and
/// multiply-adds at the target: what Rust's own operators may not become, nor C's without
/// `#pragma clang fp reassociate(on)`. Results differ in their last digits from CPU to CPU.
pub mod algebraic {
    // `ifunc build` makes instructions of these.
    extern "C" {
        fn tc_algebraic_add_f32(a: f32, b: f32) -> f32;
        fn tc_algebraic_sub_f32(a: f32, b: f32) -> f32;
        fn tc_algebraic_mul_f32(a: f32, b: f32) -> f32;
        fn tc_algebraic_div_f32(a: f32, b: f32) -> f32;
        fn tc_algebraic_add_f64(a: f64, b: f64) -> f64;
        fn tc_algebraic_sub_f64(a: f64, b: f64) -> f64;
        fn tc_algebraic_mul_f64(a: f64, b: f64) -> f64;
        fn tc_algebraic_div_f64(a: f64, b: f64) -> f64;
    }

    /// `f32` and `f64`.
    pub trait Float: Copy {
        #[doc(hidden)]
        fn __add(self, other: Self) -> Self;
        #[doc(hidden)]
        fn __sub(self, other: Self) -> Self;
        #[doc(hidden)]
        fn __mul(self, other: Self) -> Self;
        #[doc(hidden)]
        fn __div(self, other: Self) -> Self;
    }
    macro_rules! float {
        ($t:ty, $add:ident, $sub:ident, $mul:ident, $div:ident) => {
            impl Float for $t {
                #[inline(always)]
                fn __add(self, other: $t) -> $t {
                    unsafe { $add(self, other) }
                }
                #[inline(always)]
                fn __sub(self, other: $t) -> $t {
                    unsafe { $sub(self, other) }
                }
                #[inline(always)]
                fn __mul(self, other: $t) -> $t {
                    unsafe { $mul(self, other) }
                }
                #[inline(always)]
                fn __div(self, other: $t) -> $t {
                    unsafe { $div(self, other) }
                }
            }
        };
    }
    float!(f32, tc_algebraic_add_f32, tc_algebraic_sub_f32, tc_algebraic_mul_f32, tc_algebraic_div_f32);
    float!(f64, tc_algebraic_add_f64, tc_algebraic_sub_f64, tc_algebraic_mul_f64, tc_algebraic_div_f64);

    /// `a + b`
    #[inline(always)]
    pub fn add<T: Float>(a: T, b: T) -> T {
        a.__add(b)
    }
    /// `a - b`
    #[inline(always)]
    pub fn sub<T: Float>(a: T, b: T) -> T {
        a.__sub(b)
    }
    /// `a * b`
    #[inline(always)]
    pub fn mul<T: Float>(a: T, b: T) -> T {
        a.__mul(b)
    }
    /// `a / b`
    #[inline(always)]
    pub fn div<T: Float>(a: T, b: T) -> T {
        a.__div(b)
    }
}

/// What went wrong: a value of `<threechains/status.h>`, never 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Status(pub i32);

impl Status {
    pub const NOT_FOUND: Status = Status(2);
    pub const LIMIT: Status = Status(14);
    pub const DISCONNECTED: Status = Status(11);
}

/// For macros of this crate.
#[doc(hidden)]
#[inline(always)]
pub fn __checked(status: i32) -> Result<(), Status> {
    if status == 0 {
        Ok(())
    } else {
        Err(Status(status))
    }
}

/// What the target's application gives to its ifuncs; null when that is nothing.
#[derive(Clone, Copy)]
pub struct Target(pub *mut c_void);

impl Target {
    /// The target args as a `T`.
    ///
    /// # Safety
    /// The application must give its ifuncs a `T`, or nothing, and nobody else may use it while the ifunc runs.
    #[inline(always)]
    pub unsafe fn get<'a, T>(self) -> Option<&'a mut T> {
        (self.0 as *mut T).as_mut()
    }
}

/// This node's number. 0 when it is in no cluster.
#[inline(always)]
pub fn id() -> u32 {
    unsafe { abi::tc_id() }
}

/// How many nodes the cluster has. 1 when there is none.
#[inline(always)]
pub fn count() -> u32 {
    unsafe { abi::tc_count() }
}

/// Answers whoever made the call, once.
#[inline(always)]
pub fn reply(bytes: &[u8]) -> Result<(), Status> {
    __checked(unsafe { abi::tc_reply(bytes.as_ptr() as *const c_void, bytes.len()) })
}

/// Sends this ifunc itself on to another node, and the duty to answer with it.
#[inline(always)]
pub fn forward(node: u32, payload: &[u8]) -> Result<(), Status> {
    __checked(unsafe { abi::tc_forward(node, payload.as_ptr() as *const c_void, payload.len()) })
}

/// Types whose every bit pattern is a value, so that they can be read from a payload.
///
/// # Safety
/// The type holds no padding that matters, no references, no bool, char or enum.
pub unsafe trait Plain: Copy {}
macro_rules! plain {
    ($($t:ty)*) => { $(unsafe impl Plain for $t {})* };
}
plain!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// A `T` from the payload's bytes at `offset`, whatever their alignment. `None` when it does not fit.
#[inline(always)]
pub fn read<T: Plain>(bytes: &[u8], offset: usize) -> Option<T> {
    let size = core::mem::size_of::<T>();
    if offset > bytes.len() || bytes.len() - offset < size {
        return None;
    }
    Some(unsafe { core::ptr::read_unaligned(bytes.as_ptr().add(offset) as *const T) })
}

/// The bytes of a value, to reply with.
#[inline(always)]
pub fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    unsafe { core::slice::from_raw_parts(value as *const T as *const u8, core::mem::size_of::<T>()) }
}

/// Bytes as a slice of `T`. `None` when they do not start at a multiple of T's alignment (a payload does, for all types
/// up to 16 bytes); what does not fill a `T` at the end is left out.
#[inline(always)]
pub fn slice_of<T: Plain>(bytes: &[u8]) -> Option<&[T]> {
    if bytes.as_ptr() as usize % core::mem::align_of::<T>() != 0 {
        return None;
    }
    Some(unsafe { core::slice::from_raw_parts(bytes.as_ptr() as *const T, bytes.len() / core::mem::size_of::<T>()) })
}

/// For macros of this crate. `name` ends with a NUL.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn __data<'a>(name: &str) -> Option<&'a mut [u8]> {
    let mut size = 0usize;
    let found = abi::tc_data(name.as_ptr(), &mut size) as *mut u8;
    if found.is_null() {
        None
    } else {
        Some(core::slice::from_raw_parts_mut(found, size))
    }
}

/// `data!("name")`: the bytes that the target exposes under a name, as `Option<&mut [u8]>`. Unsafe: whether they may be
/// written, and who else does, is the target's affair; ask for each name once.
#[macro_export]
macro_rules! data {
    ($name:literal) => {
        $crate::__data(concat!($name, "\0"))
    };
}

/// `fail!(code, "what went wrong")`: the call failed. The first one counts; return after it.
#[macro_export]
macro_rules! fail {
    ($code:expr, $message:literal) => {
        unsafe { $crate::abi::tc_fail($code, concat!($message, "\0").as_ptr()) }
    };
}

/// `log!(level, "words")`: a line in the node's log. 0 debug, 1 info, 2 warning, 3 error.
#[macro_export]
macro_rules! log {
    ($level:expr, $message:literal) => {
        unsafe { $crate::abi::tc_log($level, concat!($message, "\0").as_ptr()) }
    };
}

/// `forward_as!(node, "name", bytes)`: another ifunc goes on, and answers in the place of this one.
#[macro_export]
macro_rules! forward_as {
    ($node:expr, $name:literal, $payload:expr) => {{
        let payload: &[u8] = $payload;
        $crate::__checked(unsafe {
            let name = concat!($name, "\0").as_ptr();
            $crate::abi::tc_forward_as($node, name, payload.as_ptr() as *const _, payload.len())
        })
    }};
}

/// `inject!(node, "name", bytes)`: sends another ifunc; nobody waits for it.
#[macro_export]
macro_rules! inject {
    ($node:expr, $name:literal, $payload:expr) => {{
        let payload: &[u8] = $payload;
        $crate::__checked(unsafe {
            let name = concat!($name, "\0").as_ptr();
            $crate::abi::tc_inject($node, name, payload.as_ptr() as *const _, payload.len())
        })
    }};
}

/// The entry point of ifunc NAME: `ifunc! { fn NAME_main(payload: &mut [u8]) { ... } }`, or with the target args,
/// `fn NAME_main(payload: &mut [u8], target: Target)`.
///
/// `ifunc! { concurrent fn NAME_main(...) { ... } }` is concurrent code: a node with several threads may run it at the
/// same time as other code, and as other calls of it. Its author promises what `TC_CONCURRENT` of `<threechains/ifunc.h>`
/// says: `static mut` variables and the target's data are written and read with atomic operations, or by nobody else.
#[macro_export]
macro_rules! ifunc {
    (concurrent fn $($rest:tt)*) => {
        #[no_mangle]
        #[allow(non_upper_case_globals)]
        pub static tc_concurrent: u32 = 1;
        $crate::ifunc! { fn $($rest)* }
    };
    (fn $name:ident($payload:ident: &mut [u8]) $body:block) => {
        $crate::ifunc! { fn $name($payload: &mut [u8], _target: Target) $body }
    };
    (fn $name:ident($payload:ident: &mut [u8], $target:ident: Target) $body:block) => {
        /// # Safety
        /// Called by the target alone.
        #[no_mangle]
        pub unsafe extern "C" fn $name(payload: *mut u8, size: usize, target_args: *mut core::ffi::c_void) {
            #[inline(always)]
            fn body($payload: &mut [u8], $target: $crate::Target) $body
            // An empty payload may come without an address, which a slice cannot have; 16 is aligned as payloads are.
            let payload = if size == 0 { 16 as *mut u8 } else { payload };
            body(core::slice::from_raw_parts_mut(payload, size), $crate::Target(target_args))
        }
    };
}
