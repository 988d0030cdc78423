//! Builds all mutants that cargo-mutants lists into one program, so no mutant needs its own build.
//!
//!   mutants-switch SOURCE TREE LIST DRAWN STATES -- COMMAND…
//!
//! LIST is the output of `cargo mutants --list --json` for SOURCE, and DRAWN holds the names of the wanted mutants,
//! one a line. This program writes their files into TREE with a switch at each mutant's place: `a < b` becomes `(if
//! crate::mutant(7) { (a) <= (b) } else { a < b })`. TREE's lib.rs decides which mutant is on (`switch.rs`). COMMAND
//! builds TREE and prints cargo's JSON messages. This program drops mutants that do not compile and builds again
//! until everything compiles. STATES then has one line for each mutant: its number, its name and its state. Standard
//! output has the test program's path.

// These files can be made again, so they need no durable writes.
#![allow(clippy::disallowed_methods)]

use std::cmp::Reverse;
use std::collections::HashMap;
use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::Value;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

type Answer<T> = Result<T, Box<dyn Error>>;

const BUILDS_MAX: usize = 40;

/// The state of a mutant.
#[derive(Debug, Clone, PartialEq)]
enum State {
    Built,
    /// The mutant does not compile, with or without a switch.
    DoesNotCompile(String),
    /// Only a separate program could hold the mutant: a constant cannot hold a switch, and two types are not one
    /// `impl Trait`.
    NoSwitch(String),
}

#[derive(Debug)]
struct Mutant {
    id: usize,
    name: String,
    file: String,
    genre: String,
    /// The replaced byte range of the file.
    span: Range<usize>,
    replacement: String,
    state: State,
}

/// The texts before and after a part of a file.
struct Site {
    mutant: usize,
    around: Range<usize>,
    before: String,
    after: String,
}

/// The position of a mutant's code in a written file, and the code that it surrounds.
struct Placed {
    mutant: usize,
    file: String,
    own: Range<usize>,
    whole: Range<usize>,
}

/// The parts of a file that mutants replace, by the position that cargo-mutants names.
#[derive(Default)]
struct Parts {
    binaries: HashMap<usize, Binary>,
    unaries: HashMap<usize, Range<usize>>,
    arms: HashMap<usize, Arm>,
    structs: HashMap<usize, Range<usize>>,
}

struct Binary {
    left: Range<usize>,
    right: Range<usize>,
    /// `a && let …`, which is not a value.
    holds_let: bool,
}

struct Arm {
    pattern_end: usize,
    guard: Option<Range<usize>>,
    /// Without another arm, a guard on this arm makes the match incomplete.
    is_beside_wildcard: bool,
}

fn bytes(node: &impl Spanned) -> Range<usize> {
    node.span().byte_range()
}

fn holds_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => holds_let(&binary.left) || holds_let(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Parts {
    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        let holds_let = holds_let(&node.left) || holds_let(&node.right);
        let binary = Binary { left: bytes(&node.left), right: bytes(&node.right), holds_let };
        self.binaries.insert(bytes(&node.op).start, binary);
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        self.unaries.insert(bytes(&node.op).start, bytes(node));
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_match(&mut self, node: &'ast syn::ExprMatch) {
        let is_beside_wildcard =
            node.arms.iter().any(|arm| arm.guard.is_none() && matches!(arm.pat, syn::Pat::Wild(_)));
        for arm in &node.arms {
            let guard = arm.guard.as_ref().map(|(_, guard)| bytes(guard));
            let pattern = bytes(&arm.pat);
            self.arms.insert(pattern.start, Arm { pattern_end: pattern.end, guard, is_beside_wildcard });
        }
        visit::visit_expr_match(self, node);
    }

    fn visit_expr_struct(&mut self, node: &'ast syn::ExprStruct) {
        for field in &node.fields {
            self.structs.insert(bytes(field).start, bytes(node));
        }
        visit::visit_expr_struct(self, node);
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Answer<&'a str> {
    value[key].as_str().ok_or_else(|| format!("no {key} in {value}").into())
}

fn number(value: &Value, key: &str) -> Answer<usize> {
    Ok(usize::try_from(value[key].as_u64().ok_or_else(|| format!("no {key} in {value}"))?)?)
}

/// The byte offset of a line and a column, both from 1, with columns in characters.
fn offset(source: &str, place: &Value) -> Answer<usize> {
    let (line, column) = (number(place, "line")?, number(place, "column")?);
    let begin: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    Ok(begin + source[begin..].chars().take(column - 1).map(char::len_utf8).sum::<usize>())
}

/// The mutants with these names, numbered from 1, and their files.
fn listed(list: &str, drawn: &str, root: &Path) -> Answer<(Vec<Mutant>, HashMap<String, String>)> {
    let values: Vec<Value> = serde_json::from_str(list)?;
    let by_name: HashMap<&str, &Value> =
        values.iter().map(|value| Ok((text(value, "name")?, value))).collect::<Answer<_>>()?;
    let (mut mutants, mut sources) = (Vec::new(), HashMap::new());
    for (name, id) in drawn.lines().zip(1..) {
        let value = by_name.get(name).ok_or_else(|| format!("{name} is not listed"))?;
        let file = text(value, "file")?.to_owned();
        if !sources.contains_key(&file) {
            sources.insert(file.clone(), fs::read_to_string(root.join(&file))?);
        }
        let (source, span) = (&sources[&file], &value["span"]);
        mutants.push(Mutant {
            id,
            name: name.to_owned(),
            genre: text(value, "genre")?.to_owned(),
            span: offset(source, &span["start"])?..offset(source, &span["end"])?,
            replacement: text(value, "replacement")?.to_owned(),
            file,
            state: State::Built,
        });
    }
    Ok((mutants, sources))
}

/// The place of a mutant's switch, or the reason why there is none.
fn site(mutant: &Mutant, source: &str, parts: &Parts) -> Result<Site, State> {
    let (id, span, replacement) = (mutant.id, &mutant.span, &mutant.replacement);
    let on = format!("crate::mutant({id})");
    let site = |around: Range<usize>, before: String, after: &str| Site {
        mutant: id,
        around,
        before,
        after: after.to_owned(),
    };
    let choice =
        |around: Range<usize>, other: String| Ok(site(around, format!("(if {on} {{ {other} }} else {{ "), " })"));
    let without = |whole: &Range<usize>| [&source[whole.start..span.start], &source[span.end..whole.end]].concat();
    let unknown = State::NoSwitch("not found in the syntax tree".to_owned());
    match mutant.genre.as_str() {
        "FnValue" if replacement.starts_with("::std::iter::") => {
            Err(State::NoSwitch("two types are no one impl Iterator".to_owned()))
        }
        "FnValue" => Ok(site(span.start..span.start, format!("if {on} {{ return {replacement}; }} "), "")),
        "BinaryOperator" => match parts.binaries.get(&span.start).ok_or(unknown)? {
            binary if binary.holds_let => Err(State::DoesNotCompile("a let is no value".to_owned())),
            Binary { left, right, .. } => {
                let other = format!("({}) {replacement} ({})", &source[left.clone()], &source[right.clone()]);
                choice(left.start..right.end, other)
            }
        },
        "UnaryOperator" => {
            let whole = parts.unaries.get(&span.start).ok_or(unknown)?;
            choice(whole.clone(), without(whole))
        }
        "StructField" => {
            let whole = parts.structs.get(&span.start).ok_or(unknown)?;
            choice(whole.clone(), without(whole))
        }
        "MatchArmGuard" => choice(span.clone(), replacement.clone()),
        "MatchArm" => match parts.arms.get(&span.start).ok_or(unknown)? {
            Arm { is_beside_wildcard: false, .. } => Err(State::DoesNotCompile("no other arm takes all".to_owned())),
            Arm { guard: Some(guard), .. } => Ok(site(guard.clone(), format!("!{on} && ("), ")")),
            Arm { pattern_end: end, .. } => Ok(site(*end..*end, format!(" if !{on}"), "")),
        },
        genre => Err(State::NoSwitch(format!("{genre} is not known here"))),
    }
}

/// The source with all switches, and their positions. If several switches surround the same part, the first is
/// outermost.
fn planted(file: &str, source: &str, mut sites: Vec<Site>) -> (String, Vec<Placed>) {
    sites.sort_by_key(|site| (site.around.start, !site.around.is_empty(), Reverse(site.around.end)));
    let (mut out, mut placed, mut open) = (String::new(), Vec::<Placed>::new(), Vec::<(usize, usize)>::new());
    let mut done = 0;
    let mut close_until = |at: usize, out: &mut String, open: &mut Vec<(usize, usize)>, placed: &mut Vec<Placed>| {
        while let Some(&(innermost, index)) = open.last() {
            let end = sites[innermost].around.end;
            if end > at {
                break;
            }
            out.push_str(&source[done..end]);
            out.push_str(&sites[innermost].after);
            (done, placed[index].whole.end) = (end, out.len());
            open.pop();
        }
        if at <= source.len() {
            out.push_str(&source[done..at]);
            done = at;
        }
    };
    for (index, site) in sites.iter().enumerate() {
        // A part that begins at another's end is outside it, unless it is empty.
        close_until(site.around.start, &mut out, &mut open, &mut placed);
        let begin = out.len();
        out.push_str(&site.before);
        let own = begin..out.len();
        open.push((index, placed.len()));
        placed.push(Placed { mutant: site.mutant, file: file.to_owned(), whole: own.clone(), own });
    }
    close_until(source.len(), &mut out, &mut open, &mut placed);
    (out, placed)
}

/// Writes every file with the remaining mutants. Unchanged files keep their time.
fn write(tree: &Path, sources: &HashMap<String, String>, mutants: &mut [Mutant]) -> Answer<Vec<Placed>> {
    let mut all = Vec::new();
    for (file, source) in sources {
        let mut parts = Parts::default();
        parts.visit_file(&syn::parse_file(source)?);
        let mut sites = Vec::new();
        for mutant in mutants.iter_mut().filter(|mutant| mutant.file == *file && mutant.state == State::Built) {
            match site(mutant, source, &parts) {
                Ok(site) => sites.push(site),
                Err(state) => mutant.state = state,
            }
        }
        let (written, placed) = planted(file, source, sites);
        let path = tree.join(file);
        if fs::read_to_string(&path).ok().as_ref() != Some(&written) {
            fs::create_dir_all(path.parent().ok_or("a file without a directory")?)?;
            fs::write(&path, written)?;
        }
        all.extend(placed);
    }
    Ok(all)
}

/// The mutant of a compiler error: its code contains or surrounds a span of the error.
fn blamed(error: &Value, placed: &[Placed]) -> Option<usize> {
    let spans: Vec<(&str, usize)> = std::iter::once(error)
        .chain(error["children"].as_array().into_iter().flatten())
        .flat_map(|message| message["spans"].as_array().into_iter().flatten())
        .filter_map(|span| Some((span["file_name"].as_str()?, usize::try_from(span["byte_start"].as_u64()?).ok()?)))
        .collect();
    let innermost = |range: fn(&Placed) -> &Range<usize>| {
        spans.iter().find_map(|(file, at)| {
            let holding = placed.iter().filter(|placed| placed.file == *file && range(placed).contains(at));
            holding.min_by_key(|placed| range(placed).len()).map(|placed| placed.mutant)
        })
    };
    innermost(|placed| &placed.own).or_else(|| innermost(|placed| &placed.whole))
}

fn state_after(error: &Value) -> State {
    let code = error["code"]["code"].as_str().unwrap_or("no code");
    let said = format!("{code} {}", error["message"].as_str().unwrap_or_default()).replace('\n', " ");
    // The switch is in a constant or a const fn, which cannot call it.
    if matches!(code, "E0015" | "E0658") { State::NoSwitch(said) } else { State::DoesNotCompile(said) }
}

enum Build {
    Done(String),
    Failed(Vec<(usize, State)>),
}

fn build(command: &[String], tree: &Path, placed: &[Placed]) -> Answer<Build> {
    let output = Command::new(&command[0]).args(&command[1..]).current_dir(tree).stderr(Stdio::inherit()).output()?;
    let mut program = None;
    let mut failed = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line)?;
        if let Some(path) = message["executable"].as_str() {
            program = Some(path.to_owned());
        }
        let error = &message["message"];
        if error["level"] != "error" {
            continue;
        }
        match blamed(error, placed) {
            Some(mutant) => failed.push((mutant, state_after(error))),
            // "aborting due to … errors" has no span.
            None if error["spans"].as_array().is_none_or(Vec::is_empty) => {}
            None => {
                return Err(format!("no mutant's fault:\n{}", error["rendered"].as_str().unwrap_or_default()).into());
            }
        }
    }
    match program {
        Some(path) if output.status.success() => Ok(Build::Done(path)),
        _ if failed.is_empty() => Err(format!("{command:?} failed with {} and blames no mutant", output.status).into()),
        _ => Ok(Build::Failed(failed)),
    }
}

/// Drops a mutant. For a repeated array value that cannot be copied, the compiler names only one place in a function:
/// drop the function's other mutants of this kind too, because each would cost a build.
fn leave_out(mutants: &mut [Mutant], id: usize, state: &State) {
    let (file, span) = (mutants[id - 1].file.clone(), mutants[id - 1].span.clone());
    let is_copy = matches!(state, State::DoesNotCompile(why) if why.contains("std::marker::Copy` is not satisfied"));
    for mutant in mutants {
        let repeats = is_copy && mutant.genre == "FnValue" && mutant.replacement.contains("; ");
        if mutant.id == id || (repeats && mutant.file == file && mutant.span == span) {
            eprintln!("left out: {}: {state:?}", mutant.name);
            mutant.state = state.clone();
        }
    }
}

fn table(mutants: &[Mutant]) -> String {
    let line = |mutant: &Mutant| {
        let state = match &mutant.state {
            State::Built => "built".to_owned(),
            State::DoesNotCompile(why) => format!("does not compile: {why}"),
            State::NoSwitch(why) => format!("no switch: {why}"),
        };
        format!("{}\t{}\t{state}\n", mutant.id, mutant.name)
    };
    mutants.iter().map(line).collect()
}

fn main() -> Answer<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [source, tree, list, drawn, states, dashes, command @ ..] = arguments.as_slice() else {
        return Err("usage: mutants-switch SOURCE TREE LIST DRAWN STATES -- COMMAND…".into());
    };
    if dashes != "--" || command.is_empty() {
        return Err("the build command follows --".into());
    }
    let (mut mutants, sources) = listed(&fs::read_to_string(list)?, &fs::read_to_string(drawn)?, Path::new(source))?;
    for _ in 0..BUILDS_MAX {
        let placed = write(Path::new(tree), &sources, &mut mutants)?;
        match build(command, Path::new(tree), &placed)? {
            Build::Done(program) => {
                fs::write(states, table(&mutants))?;
                println!("{program}");
                return Ok(());
            }
            Build::Failed(failed) => {
                for (id, state) in failed {
                    leave_out(&mut mutants, id, &state);
                }
            }
        }
    }
    Err(format!("still does not compile after {BUILDS_MAX} builds").into())
}
