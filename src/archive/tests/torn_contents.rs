//! What a power loss makes of a file's unsynced content.

use fastrand::Rng;

const SECTOR: usize = 512;

/// The content after a power loss, from the durable content and the written content.
pub type Found = fn(&[u8], &[u8]) -> Vec<u8>;

pub const CONTENTS: [Found; 9] = [
    |_, now| now.to_vec(),
    |durable, _| durable.to_vec(),
    // Cut: in the middle of the new data, after its first byte, before its last byte.
    |durable, now| now[..durable.len().min(now.len()).midpoint(now.len())].to_vec(),
    |durable, now| now[..(durable.len() + 1).min(now.len())].to_vec(),
    |durable, now| now[..now.len().saturating_sub(1).max(durable.len().min(now.len()))].to_vec(),
    // The full length, but with zeros.
    |durable, now| zeroed(durable, now, |_, _| true),
    |durable, now| zeroed(durable, now, |at, _| (at / SECTOR) % 2 == 1),
    |durable, now| zeroed(durable, now, |at, middle| at < middle),
    |durable, now| zeroed(durable, now, |at, middle| at >= middle),
];

fn zeroed(durable: &[u8], now: &[u8], is_lost: impl Fn(usize, usize) -> bool) -> Vec<u8> {
    let kept = durable.iter().zip(now).take_while(|(a, b)| a == b).count();
    let middle = kept.midpoint(now.len()).next_multiple_of(SECTOR);
    let byte = |(at, byte): (usize, &u8)| if at >= kept && is_lost(at, middle) { 0 } else { *byte };
    now.iter().enumerate().map(byte).collect()
}

/// A mix of durable and written sectors, with either length or one between.
pub fn torn(durable: &[u8], now: &[u8], chance: &mut Rng) -> Vec<u8> {
    let (least, most) = (durable.len().min(now.len()), durable.len().max(now.len()));
    let length = match chance.u8(..8) {
        0 => durable.len(),
        1..5 => chance.usize(least..=most),
        _ => now.len(),
    };
    let written = chance.f64();
    let is_new: Vec<bool> = (0..=length / SECTOR).map(|_| chance.f64() < written).collect();
    // Bytes that were never written are zeros; bytes that were cut off can remain.
    let byte = |at: usize| {
        let of = |content: &[u8]| content.get(at).copied();
        of(if is_new[at / SECTOR] { now } else { durable }).or_else(|| of(durable).filter(|_| at >= now.len()))
    };
    (0..length).map(|at| byte(at).unwrap_or(0)).collect()
}
