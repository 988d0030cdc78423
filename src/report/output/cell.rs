//! One value of a result as text.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::Value;

mod out_of_range;

/// The text of a value, or `None` for NULL. Times have the form `2026-11-20T08:00:00.123456`; bytes that are not printable ASCII
/// have the form `\xNN`.
pub fn text(array: &dyn Array, row: usize) -> Result<Option<String>, ArrowError> {
    Ok(Texts::of(array)?.get(row, &mut String::new())?.map(str::to_owned))
}

/// The texts of a column, equal to those of [`text`], without a new string for each value.
pub struct Texts<'a> {
    array: &'a dyn Array,
    formatter: Option<ArrayFormatter<'a>>,
}

impl<'a> Texts<'a> {
    pub fn of(array: &'a dyn Array) -> Result<Self, ArrowError> {
        const OPTIONS: FormatOptions<'static> = FormatOptions::new();
        let kind = array.data_type();
        let is_ours = kind.is_nested()
            || matches!(kind, DataType::Utf8 | DataType::Binary | DataType::LargeBinary)
            || matches!(kind, DataType::Timestamp(_, Some(_)) | DataType::Decimal128(_, 0));
        let formatter = if is_ours { None } else { Some(ArrayFormatter::try_new(array, &OPTIONS)?) };
        Ok(Self { array, formatter })
    }

    /// The text of one value, which can use the buffer `held`; `None` for NULL.
    pub fn get<'b>(&'b self, row: usize, held: &'b mut String) -> Result<Option<&'b str>, ArrowError> {
        let array = self.array;
        if is_null(array, row) {
            return Ok(None);
        }
        held.clear();
        match (&self.formatter, array.data_type()) {
            (Some(formatter), _) => match out_of_range::text(array, row) {
                Some(text) => held.push_str(&text),
                None => formatter.value(row).write(held)?,
            },
            (None, DataType::Utf8) => return Ok(Some(array.as_string::<i32>().value(row))),
            (None, DataType::Binary) => held.push_str(&escaped(array.as_binary::<i32>().value(row))),
            (None, DataType::LargeBinary) => held.push_str(&escaped(array.as_binary::<i64>().value(row))),
            (None, DataType::Timestamp(..)) => held.push_str(&out_of_range::text(array, row).unwrap_or_default()),
            // A HUGEINT can have more digits than the formatter's decimal type, which would cut it.
            (None, DataType::Decimal128(..)) => {
                held.push_str(&array.as_primitive::<Decimal128Type>().value(row).to_string());
            }
            (None, _) => push_json(held, array, row)?,
        }
        Ok(Some(held))
    }
}

/// Appends the value as JSON: numbers with every digit; values without a JSON form as text.
pub fn push_json(out: &mut String, array: &dyn Array, row: usize) -> Result<(), ArrowError> {
    if is_null(array, row) {
        out.push_str("null");
        return Ok(());
    }
    let kind = array.data_type();
    match kind {
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Float32 => push_float(out, f64::from(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => push_float(out, array.as_primitive::<Float64Type>().value(row)),
        DataType::List(_) => push_list(out, array.as_list::<i32>().value(row).as_ref())?,
        DataType::LargeList(_) => push_list(out, array.as_list::<i64>().value(row).as_ref())?,
        DataType::FixedSizeList(..) => push_list(out, array.as_fixed_size_list().value(row).as_ref())?,
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let members = fields.iter().zip(columns).map(|(field, column)| (field.name().as_str(), column, row));
            push_members(out, members)?;
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            let names = (0..entries.len()).map(|at| text(keys, at).map(Option::unwrap_or_default));
            let names = names.collect::<Result<Vec<_>, _>>()?;
            push_members(out, names.iter().enumerate().map(|(at, name)| (name.as_str(), values, at)))?;
        }
        DataType::Union(..) => push_json(out, array.as_union().value(row).as_ref(), 0)?,
        _ => {
            let text = text(array, row)?.unwrap_or_default();
            if is_exact_number(kind) { out.push_str(&text) } else { push_string(out, &text) }
        }
    }
    Ok(())
}

pub fn push_string(out: &mut String, text: &str) {
    out.push_str(&Value::from(text).to_string());
}

pub fn is_number(kind: &DataType) -> bool {
    kind.is_floating() || is_exact_number(kind)
}

fn is_exact_number(kind: &DataType) -> bool {
    kind.is_integer() || matches!(kind, DataType::Decimal128(..) | DataType::Decimal256(..))
}

fn is_null(array: &dyn Array, row: usize) -> bool {
    array.is_null(row) || matches!(array.data_type(), DataType::Null)
}

/// JSON has no infinity and no NaN, so they become null.
fn push_float(out: &mut String, value: f64) {
    out.push_str(&Value::from(value).to_string());
}

fn push_list(out: &mut String, items: &dyn Array) -> Result<(), ArrowError> {
    out.push('[');
    for at in 0..items.len() {
        if at > 0 {
            out.push(',');
        }
        push_json(out, items, at)?;
    }
    out.push(']');
    Ok(())
}

/// Appends a row as a JSON object with these names of its columns.
pub fn push_row(out: &mut String, batch: &RecordBatch, names: &[String], row: usize) -> Result<(), ArrowError> {
    push_members(out, names.iter().zip(batch.columns()).map(|(name, column)| (name.as_str(), column, row)))
}

fn push_members<'a>(
    out: &mut String,
    members: impl Iterator<Item = (&'a str, &'a ArrayRef, usize)>,
) -> Result<(), ArrowError> {
    out.push('{');
    for (position, (name, values, at)) in members.enumerate() {
        if position > 0 {
            out.push(',');
        }
        push_string(out, name);
        out.push(':');
        push_json(out, values, at)?;
    }
    out.push('}');
    Ok(())
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b' '..=b'~' if byte != b'\\' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02X}")),
        }
    }
    text
}

/// Removes terminal control sequences and marks that change the text direction; line ends and tabs become spaces.
pub fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => Some(' '),
        '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{feff}' => None,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => None,
        c if c.is_control() => None,
        c => Some(c),
    };
    text.chars().filter_map(shown).collect()
}
