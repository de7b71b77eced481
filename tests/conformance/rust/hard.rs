// SPDX-License-Identifier: Apache-2.0
// What Rust can do and few ifuncs do; each word of the answer is one of them.
#![no_std]
use core::sync::atomic::{AtomicU64, Ordering};
use threechains_ifunc::*;

static CALLS: AtomicU64 = AtomicU64::new(0);
static TABLE: [u16; 5] = [3, 1, 4, 1, 5];

trait Shape {
    fn area(&self) -> u64;
}
struct Square(u64);
struct Row<'a>(&'a [u16]);
impl Shape for Square {
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}
impl Shape for Row<'_> {
    fn area(&self) -> u64 {
        self.0.iter().map(|&width| width as u64).sum()
    }
}

enum Token {
    Number(u64),
    Plus,
    Times { by: u8 },
}

#[inline(never)]
fn evaluated(tokens: &[Token]) -> Option<u64> {
    let (mut value, mut adding) = (0u64, true);
    for token in tokens {
        match token {
            Token::Number(n) if adding => value = value.checked_add(*n)?,
            Token::Number(_) => return None,
            Token::Plus => adding = true,
            Token::Times { by } => value = value.checked_mul(*by as u64)?,
        }
    }
    Some(value)
}

#[inline(never)]
fn ways(steps: u64) -> u64 {
    if steps < 2 { 1 } else { ways(steps - 1) + ways(steps - 2) }
}

ifunc! {
    fn hard_main(payload: &mut [u8]) {
        let a = read::<u64>(payload, 0).unwrap();
        let b = read::<u64>(payload, 8).unwrap();
        let mut answer = [0u64; 12];
        answer[0] = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
        let product = a as u128 * b as u128 * 1_000_000_007;
        answer[1] = (product >> 64) as u64;
        answer[2] = (product / (b as u128 | 1) % 1_000_003) as u64;
        let shapes: [&dyn Shape; 2] = [&Square(a), &Row(&TABLE)];
        answer[3] = shapes.iter().map(|shape| shape.area()).sum();
        let tokens = [Token::Number(a), Token::Times { by: 3 }, Token::Plus, Token::Number(4)];
        answer[4] = evaluated(&tokens).unwrap_or(0);
        answer[5] = ways(b % 20);
        let mut numbers = [0i32; 16];
        for (i, number) in numbers.iter_mut().enumerate() {
            *number = (i as i32 * 7 + a as i32) % 16 - 8;
        }
        numbers.sort_unstable_by_key(|&number| (number.abs(), number));
        answer[6] = numbers.iter().fold(0u64, |sum, &number| sum.wrapping_mul(31).wrapping_add(number as u64));
        answer[7] = (a as f64 * 1e300 * 1e10) as u64;
        answer[8] = (-1.5f32 * b as f32) as u8 as u64 + (a as f32 / 2.0) as u64;
        let add = |by: u64| move |n: u64| n.rotate_left(8) ^ by;
        answer[9] = add(a)(b);
        answer[10] = payload.chunks_exact(4).map(|chunk| u32::from_le_bytes(chunk.try_into().unwrap()) as u64).sum();
        answer[11] = char::from_u32(a as u32 % 2 + 0xfc).map_or(0, |c| c.len_utf8() as u64 * 10 + ('z' as u64 - 'a' as u64));
        for word in &mut answer {
            *word = word.to_le();
        }
        let _ = reply(unsafe { core::slice::from_raw_parts(answer.as_ptr().cast(), 96) });
    }
}
