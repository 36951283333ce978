//! What a command prints: text and tables for people, JSON for programs.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::ValueEnum;
use comfy_table::{Attribute, Cell, Color as Hue, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::fail::Fail;

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// The colour of a word, by what it means for the reader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Bad,
    Busy,
    Attention,
    Faint,
    Strong,
}

/// Where and how to print.
pub struct Output {
    pub json: bool,
    colors: bool,
    terminal: bool,
}

impl Output {
    pub fn new(json: bool, color: Color) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        let colors = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !plain,
        };
        Self { json, colors: colors && !json, terminal }
    }

    pub fn colors(&self) -> bool {
        self.colors
    }

    /// Whether people see this as it happens.
    pub fn terminal(&self) -> bool {
        self.terminal && !self.json
    }

    /// Columns of the terminal; absent: there is none.
    pub fn width(&self) -> Option<usize> {
        Table::new().width().map(usize::from)
    }

    /// One line for people; nothing with `--json`.
    pub fn say(&self, line: impl AsRef<str>) {
        if !self.json {
            print_line(line.as_ref());
        }
    }

    /// A line on the side, for people who wait.
    pub fn note(&self, line: impl AsRef<str>) {
        if !self.json {
            let _ = writeln!(std::io::stderr(), "{}", clean(line.as_ref()));
        }
    }

    /// One JSON document, on a line of its own.
    pub fn document(&self, value: &Value) {
        print_line(&value.to_string());
    }

    /// The answer of a command: the document with `--json`, else the text.
    pub fn answer(&self, value: &Value, text: impl FnOnce() -> String) {
        if self.json {
            self.document(value);
        } else {
            print_line(&text());
        }
    }

    /// Reports on stderr and gives the exit code.
    pub fn fail(&self, fail: &Fail) -> ExitCode {
        let mut stderr = std::io::stderr().lock();
        let _ = if self.json {
            let error = json!({ "error": { "code": fail.code, "message": fail.message, "field": fail.field } });
            writeln!(stderr, "{error}")
        } else {
            let field = fail.field.as_ref().map(|f| format!(" (field: {f})")).unwrap_or_default();
            writeln!(stderr, "{}{field}", clean(&format!("{}: {}", fail.code, fail.message)))
        };
        fail.exit.into()
    }

    /// The text in its tone. Control characters of the text are taken out.
    pub fn tone(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            _ if !self.colors => return clean(text),
            Tone::Plain => return clean(text),
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Busy => "36",
            Tone::Attention => "33",
            Tone::Faint => "2",
            Tone::Strong => "1",
        };
        format!("\u{1b}[{code}m{}\u{1b}[0m", clean(text))
    }

    /// A table with one line a row where the terminal is wide enough.
    pub fn table<const N: usize>(&self, header: [&str; N], rows: Vec<[(Tone, String); N]>) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        if !self.terminal {
            // Into a pipe nothing is wrapped, so that a line stays a row.
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
        if self.colors {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.set_header(header.iter().map(|h| Cell::new(h).add_attribute(Attribute::Bold)));
        for row in rows {
            table.add_row(row.into_iter().map(|(tone, text)| {
                let cell = Cell::new(clean(&text));
                match tone {
                    Tone::Plain => cell,
                    Tone::Good => cell.fg(Hue::Green),
                    Tone::Bad => cell.fg(Hue::Red),
                    Tone::Busy => cell.fg(Hue::Cyan),
                    Tone::Attention => cell.fg(Hue::Yellow),
                    Tone::Faint => cell.add_attribute(Attribute::Dim),
                    Tone::Strong => cell.add_attribute(Attribute::Bold),
                }
            }));
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    /// How much of so many bytes is done; on a terminal only.
    pub fn bar(&self, bytes: u64) -> ProgressBar {
        if self.json || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(bytes);
        let style =
            if self.colors { "{bar:40.cyan} {bytes} of {total_bytes}" } else { "{bar:40} {bytes} of {total_bytes}" };
        bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar
    }

    /// A line that moves while somebody waits; on a terminal only.
    pub fn progress(&self, message: &str) -> ProgressBar {
        if self.json || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new_spinner();
        let style = if self.colors { "{spinner:.cyan} {msg} ({elapsed})" } else { "{spinner} {msg} ({elapsed})" };
        bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_message(clean(message));
        bar.enable_steady_tick(std::time::Duration::from_millis(120));
        bar
    }
}

/// A reader that went away (`| head`) is not an error of ours.
fn print_line(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Text of other people must not steer the terminal: control characters and
/// the marks that turn the direction of writing become visible.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() => '\u{fffd}',
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// The first line, at most `limit` characters, with a mark where it was cut.
pub fn excerpt(text: &str, limit: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let short: String = line.chars().take(limit).collect();
    if short.len() < text.trim().len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_cannot_steer_the_terminal() {
        let output = Output::new(false, Color::Always);
        let told = output.tone(Tone::Good, "a\u{1b}[2Jb\u{9b}c\u{202e}d");
        assert_eq!(told, "\u{1b}[32ma\u{fffd}[2Jb\u{fffd}c\u{fffd}d\u{1b}[0m");
        let table = output.table(["name"], vec![[(Tone::Plain, "x\u{7}\u{1b}]0;title\u{7}".to_owned())]]);
        assert!(!table.contains('\u{7}') && !table.contains("\u{1b}]"));
    }

    #[test]
    fn excerpts_end_on_a_character() {
        assert_eq!(excerpt("  研究研究\nmore", 2), "研究…");
        assert_eq!(excerpt("short", 10), "short");
        assert_eq!(excerpt("one\ntwo", 10), "one…");
    }
}
