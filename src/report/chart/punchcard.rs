//! A punch card: hours of a day by weekdays; larger values have larger dots.

use crate::report::catalog::ChartRole;

use super::Sketch;
use super::input::Input;
use super::number::count;
use super::scale::Unit;
use super::series::counted;
use super::svg::{Anchor, Canvas, SMALL};
use super::value::Value;

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const HOURS: usize = 24;
const ROW: f64 = 26.0;

pub fn draw(input: &Input<'_>, canvas: &mut Canvas) -> Sketch {
    let mut cells = [[None::<f64>; HOURS]; 7];
    let mut lost = 0;
    let (hours, days) = (input.values(ChartRole::X), input.values(ChartRole::Y));
    for ((hour, day), weight) in hours.iter().zip(days).zip(input.weights()) {
        match (hour_of(hour), day_of(day), weight) {
            (Some(hour), Some(day), Some(weight)) => *cells[day][hour].get_or_insert(0.0) += weight,
            _ => lost += 1,
        }
    }
    let mut notes = Vec::new();
    if lost > 0 {
        notes.push(format!("{} without an hour and a weekday left out", counted(lost, "row")));
    }
    let unit = Unit::of(input.name(ChartRole::Value), input.values(ChartRole::Value));
    let most = cells.iter().flatten().flatten().copied().fold(0.0, f64::max);
    let narrow = canvas.is_narrow();
    let left = if narrow { 34.0 } else { 84.0 };
    let step = (canvas.width - left - 6.0) / count(HOURS);
    let radius = (step / 2.0 - 0.5).min(ROW / 2.0 - 1.0);
    let top = SMALL + 12.0;
    let title = format!("{}, the largest dot {}", input.word(ChartRole::Value), unit.short(most));
    canvas.text([0.0, SMALL], Anchor::Start, "small", &title);
    for (day, name) in DAYS.iter().enumerate() {
        let y = top + (count(day) + 0.5) * ROW;
        let shown = if narrow { &name[..2] } else { name };
        canvas.text([left - 8.0, y + 4.0], Anchor::End, "label", shown);
        canvas.line([left, y, canvas.width - 6.0, y], "grid", "");
        for (hour, value) in cells[day].iter().enumerate() {
            let Some(value) = value.filter(|value| *value > 0.0) else { continue };
            let x = left + (count(hour) + 0.5) * step;
            // The eye compares the areas of dots.
            let r = (value / most).sqrt() * radius;
            let title = format!("{name} {hour:02}:00 to {:02}:00: {}", (hour + 1) % HOURS, unit.full(value));
            canvas.circle([x, y, r.max(1.2)], "class=\"f0\"", &title);
        }
    }
    let bottom = top + 7.0 * ROW;
    for hour in (0..HOURS).step_by(if narrow { 6 } else { 3 }) {
        let x = left + (count(hour) + 0.5) * step;
        canvas.text([x, bottom + 14.0], Anchor::Middle, "small", &format!("{hour:02}:00"));
    }
    Sketch { height: bottom + 20.0, summary: summary(input, &cells, unit), notes }
}

fn summary(input: &Input<'_>, cells: &[[Option<f64>; HOURS]; 7], unit: Unit) -> String {
    let all = cells.iter().enumerate().flat_map(|(day, hours)| {
        hours.iter().enumerate().filter_map(move |(hour, value)| value.map(|value| (day, hour, value)))
    });
    let what = format!("{} by weekday and hour", input.word(ChartRole::Value));
    match all.max_by(|a, b| a.2.total_cmp(&b.2)) {
        Some((day, hour, value)) => format!("{what}: most on {} at {hour:02}:00 with {}", DAYS[day], unit.full(value)),
        None => what,
    }
}

fn hour_of(value: &Value) -> Option<usize> {
    match value {
        Value::Number(n) => whole(*n).filter(|hour| *hour < HOURS),
        Value::Time(t) => whole(((t / super::time::DAY).rem_euclid(1.0) * count(HOURS)).floor()),
        Value::Text(text) => text.split(':').next()?.trim().parse().ok().filter(|hour| *hour < HOURS),
        Value::Null => None,
    }
}

/// Monday is 0. As a number, 1 is Monday and 6 Saturday; Sunday is 7 or 0.
fn day_of(value: &Value) -> Option<usize> {
    match value {
        Value::Number(n) => whole(*n).filter(|day| *day <= 7).map(|day| (day + 6) % 7),
        Value::Time(t) => Some(super::time::weekday(*t)),
        Value::Text(text) => {
            let start: String = text.trim().to_lowercase().chars().take(3).collect();
            DAYS.iter().position(|day| day.to_lowercase().starts_with(&start)).filter(|_| start.len() >= 2)
        }
        Value::Null => None,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small whole number")]
fn whole(n: f64) -> Option<usize> {
    (n.fract() == 0.0 && (0.0..100.0).contains(&n)).then_some(n as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_weekday_is_recognised() {
        for (value, day) in [
            (Value::Number(1.0), Some(0)),
            (Value::Number(7.0), Some(6)),
            (Value::Number(0.0), Some(6)),
            (Value::Number(8.0), None),
            (Value::Text("Sat".into()), Some(5)),
            (Value::Text("wednesday".into()), Some(2)),
            (Value::Text(String::new()), None),
            (Value::Null, None),
        ] {
            assert_eq!(day_of(&value), day, "{value:?}");
        }
        assert_eq!(hour_of(&Value::Text("08:30".into())), Some(8));
        assert_eq!(hour_of(&Value::Number(24.0)), None);
    }
}
