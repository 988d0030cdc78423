//! The part of Apache Avro that Iceberg's manifests need: numbers, bytes, options, arrays, and container files of one schema.
//!
//! A reader accepts only the schema that this program writes, so it resolves no schema against another.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use crate::model::Digest;

const MAGIC: &[u8] = b"Obj\x01";
const SYNC_BYTES: usize = 16;
/// The most bytes of an expanded block.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// Encoded values, one after the other.
#[derive(Debug, Default)]
pub struct Encoder(Vec<u8>);

impl Encoder {
    /// An `int` or `long`: zigzag, seven bits a byte.
    pub fn long(&mut self, value: i64) {
        let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
        loop {
            let [low, ..] = (rest & 0x7f).to_le_bytes();
            rest >>= 7;
            match rest {
                0 => return self.0.push(low),
                _ => self.0.push(low | 0x80),
            }
        }
    }

    /// A count of files, rows or bytes.
    pub fn count(&mut self, value: u64) {
        self.long(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// `bytes` or a `string`.
    pub fn bytes(&mut self, value: &[u8]) {
        self.count(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// The branch of a union of null and another type: the value follows.
    pub fn some(&mut self) {
        self.long(1);
    }

    /// An array as one block.
    pub fn array<T>(&mut self, items: &[T], mut encode: impl FnMut(&mut Self, &T)) {
        if !items.is_empty() {
            self.count(items.len() as u64);
            items.iter().for_each(|item| encode(self, item));
        }
        self.long(0);
    }
}

/// Reads the values of an [`Encoder`]. The caller puts the file's path before the text of an error.
#[derive(Debug)]
pub struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub fn long(&mut self) -> Result<i64, String> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let (&byte, rest) = self.0.split_first().ok_or("ends within a number")?;
            self.0 = rest;
            if shift > 63 {
                return Err("holds a number of more than 64 bits".to_owned());
            }
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
            }
        }
    }

    pub fn count(&mut self) -> Result<u64, String> {
        let value = self.long()?;
        u64::try_from(value).map_err(|_| format!("holds the count {value}"))
    }

    pub fn bytes(&mut self) -> Result<&'a [u8], String> {
        let length = self.count()?;
        let found = usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length));
        let (value, rest) = found.ok_or("ends within a text")?;
        self.0 = rest;
        Ok(value)
    }

    pub fn string(&mut self) -> Result<String, String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| "holds a text that is not UTF-8".to_owned())
    }

    /// Whether a union of null and another type holds a value.
    pub fn is_some(&mut self) -> Result<bool, String> {
        match self.long()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("holds branch {other} of a union of two")),
        }
    }

    pub fn array<T>(&mut self, mut decode: impl FnMut(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        let mut items = Vec::new();
        loop {
            let count = match self.long()? {
                0 => return Ok(items),
                count @ 1.. => count,
                // After a negative count stands the size of the block.
                count => {
                    self.long()?;
                    count.checked_neg().ok_or("holds an endless array")?
                }
            };
            for _ in 0..count {
                items.push(decode(self)?);
            }
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (value, rest) = self.0.split_at_checked(length).ok_or("ends too early")?;
        self.0 = rest;
        Ok(value)
    }
}

/// A container file of `records`, with its own entries in the header.
pub fn container<T>(
    schema: &str,
    header: &[(&str, &str)],
    records: &[T],
    encode: impl FnMut(&mut Encoder, &T),
) -> Vec<u8> {
    let mut encode = encode;
    let mut body = Encoder::default();
    records.iter().for_each(|record| encode(&mut body, record));
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::default());
    let block = deflate.write_all(&body.0).and_then(|()| deflate.finish()).expect("BUG: memory takes all bytes");
    // The marker depends only on the content: the same table gives the same bytes.
    let sync = Digest::of(&body.0).0;
    let sync = &sync[..SYNC_BYTES];
    let mut file = Encoder(MAGIC.to_vec());
    let own = [("avro.schema", schema), ("avro.codec", "deflate")];
    let entries: Vec<&(&str, &str)> = own.iter().chain(header).collect();
    file.array(&entries, |out, (key, value)| {
        out.bytes(key.as_bytes());
        out.bytes(value.as_bytes());
    });
    file.0.extend_from_slice(sync);
    if !records.is_empty() {
        file.count(records.len() as u64);
        file.bytes(&block);
        file.0.extend_from_slice(sync);
    }
    file.0
}

/// The records of a container file that [`container`] wrote with the same schema.
pub fn records<T>(
    content: &[u8],
    schema: &str,
    mut decode: impl FnMut(&mut Decoder<'_>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut file = Decoder(content);
    if file.take(MAGIC.len())? != MAGIC {
        return Err("is no Avro file".to_owned());
    }
    let entries = file.array(|file| Ok((file.string()?, file.bytes()?)))?;
    let header: BTreeMap<String, &[u8]> = entries.into_iter().collect();
    let is = |key: &str, value: &str| header.get(key).is_some_and(|found| *found == value.as_bytes());
    if !is("avro.schema", schema) || !is("avro.codec", "deflate") {
        return Err("was written by another program: its schema or codec is not ours".to_owned());
    }
    let sync = file.take(SYNC_BYTES)?;
    let mut found = Vec::new();
    while !file.0.is_empty() {
        let count = file.count()?;
        let mut body = Vec::new();
        let mut inflate = DeflateDecoder::new(file.bytes()?).take(BLOCK_BYTES_MAX);
        inflate.read_to_end(&mut body).map_err(|e| format!("does not expand: {e}"))?;
        let mut block = Decoder(&body);
        for _ in 0..count {
            found.push(decode(&mut block)?);
        }
        if !block.0.is_empty() || file.take(SYNC_BYTES)? != sync {
            return Err("holds a block that does not end where it should".to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_round_trip(rows in prop::collection::vec((any::<i64>(), any::<Vec<u8>>()), 0..20)) {
            let file = container("\"long\"", &[("a", "b")], &rows, |out, (number, bytes)| {
                out.long(*number);
                out.bytes(bytes);
            });
            let read = |file: &[u8]| records(file, "\"long\"", |row| Ok((row.long()?, row.bytes()?.to_vec())));
            prop_assert_eq!(read(&file), Ok(rows));
            for end in 0..file.len().saturating_sub(SYNC_BYTES + 1) {
                let _ = read(&file[..end]);
            }
            prop_assert!(records(&file, "\"int\"", |row| row.long().map(drop)).unwrap_err().contains("another program"));
        }
    }

    #[test]
    fn numbers_are_encoded_as_in_the_specification() {
        for (value, bytes) in [
            (0, &[0][..]),
            (-1, &[1]),
            (1, &[2]),
            (-2, &[3]),
            (64, &[0x80, 1]),
            (-64, &[0x7f]),
            (8192, &[0x80, 0x80, 1]),
        ] {
            let mut encoder = Encoder::default();
            encoder.long(value);
            assert_eq!(encoder.0, bytes, "{value}");
        }
    }
}
