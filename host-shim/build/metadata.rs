// What registries read of a component without running it: custom sections, as
// the `wasm-metadata` crate and `wkg` name them.

/// The name of the component, and these sections. One without a text is left
/// out.
pub fn sections(texts: &[(&str, &str)]) -> Vec<u8> {
    let mut name = vec![0];
    let text = sized(b"agent-teams");
    number(text.len(), &mut name);
    name.extend(text);
    let mut out = custom("component-name", &name);
    for (section, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
        out.extend(custom(section, text.as_bytes()));
    }
    out
}

fn custom(name: &str, data: &[u8]) -> Vec<u8> {
    let mut body = sized(name.as_bytes());
    body.extend(data);
    let mut out = vec![0];
    out.extend(sized(&body));
    out
}

/// Bytes with their length before them.
fn sized(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    number(bytes.len(), &mut out);
    out.extend(bytes);
    out
}

/// LEB128.
fn number(mut n: usize, out: &mut Vec<u8>) {
    while n > 0x7f {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}
