// SPDX-License-Identifier: Apache-2.0
#![no_std]
use threechains_ifunc::*;

/// Reads "FROM TO", two decimal numbers.
fn range(text: &[u8]) -> (usize, usize) {
    let mut numbers = text.split(|&byte| byte == b' ').map(|digits| {
        digits.iter().fold(0usize, |number, &digit| number.wrapping_mul(10).wrapping_add((digit - b'0') as usize))
    });
    (numbers.next().unwrap(), numbers.next().unwrap())
}

ifunc! {
    fn histogram_main(payload: &mut [u8]) {
        let text = match unsafe { data!("text") } {
            Some(text) => text,
            None => return fail!(1, "this node exposes no text"),
        };
        let (from, to) = range(payload);
        let mut counts = [0u32; 26];
        for byte in &text[from..to] {
            let letter = byte.to_ascii_lowercase().wrapping_sub(b'a');
            if letter < 26 {
                counts[letter as usize] += 1;
            }
        }
        // The three most frequent letters, as text: "e 93, t 71, a 60".
        let mut answer = [0u8; 64];
        let mut end = 0;
        for place in 0..3 {
            let most = (0..26).max_by_key(|&letter| counts[letter]).unwrap();
            let mut digits = [0u8; 10];
            let mut count = counts[most];
            let mut first = digits.len();
            loop {
                first -= 1;
                digits[first] = b'0' + (count % 10) as u8;
                count /= 10;
                if count == 0 {
                    break;
                }
            }
            counts[most] = 0;
            let parts: [&[u8]; 4] = [if place > 0 { b", " } else { b"" }, &[b'a' + most as u8], b" ", &digits[first..]];
            for part in parts {
                answer[end..end + part.len()].copy_from_slice(part);
                end += part.len();
            }
        }
        let _ = reply(&answer[..end]);
    }
}
