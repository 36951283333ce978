//! Secrets: a public id to find them by, and 256 random bits to prove.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A new secret, in the only moment in which its text is known.
pub(super) struct Secret {
    /// Public: names the row.
    pub(super) id: String,
    /// `<prefix><id>.<256 bits in hexadecimal>`.
    pub(super) text: String,
    /// What is stored.
    pub(super) hash: [u8; 32],
}

impl Secret {
    pub(super) fn new(prefix: &str) -> anyhow::Result<Self> {
        let mut id = [0; 8];
        let mut bits = [0; 32];
        getrandom::fill(&mut id).map_err(|e| anyhow::anyhow!("no random numbers: {e}"))?;
        getrandom::fill(&mut bits).map_err(|e| anyhow::anyhow!("no random numbers: {e}"))?;
        let id = hex(&id);
        let proof = hex(&bits);
        Ok(Self { text: format!("{prefix}{id}.{proof}"), hash: hash(&proof), id })
    }
}

/// A secret as somebody presented it.
pub(super) struct Presented<'a> {
    pub(super) id: &'a str,
    hash: [u8; 32],
}

impl<'a> Presented<'a> {
    /// None: it has not the form of a secret at all.
    pub(super) fn parse(prefix: &str, text: &'a str) -> Option<Self> {
        let (id, proof) = text.strip_prefix(prefix)?.split_once('.')?;
        let hexadecimal = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (id.len() == 16 && proof.len() == 64 && hexadecimal(id) && hexadecimal(proof))
            .then(|| Self { id, hash: hash(proof) })
    }

    /// Compares in constant time.
    pub(super) fn matches(&self, stored: &[u8]) -> bool {
        self.hash.as_slice().ct_eq(stored).into()
    }
}

fn hash(proof: &str) -> [u8; 32] {
    Sha256::digest(proof.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_proves_itself_and_nothing_else() {
        let one = Secret::new("att_").unwrap();
        let two = Secret::new("att_").unwrap();
        assert_ne!(one.text, two.text);
        let presented = Presented::parse("att_", &one.text).unwrap();
        assert_eq!(presented.id, one.id);
        assert!(presented.matches(&one.hash));
        assert!(!presented.matches(&two.hash));
        assert!(!presented.matches(&[]));
    }

    #[test]
    fn only_the_exact_form_is_looked_at() {
        let good = Secret::new("att_").unwrap().text;
        assert!(Presented::parse("", &good).is_none());
        for bad in [
            "",
            "att_",
            "att_.",
            &good[..good.len() - 1],
            &format!("{good}0"),
            &good.to_uppercase(),
            &good.replace('.', ""),
        ] {
            assert!(Presented::parse("att_", bad).is_none(), "{bad}");
        }
    }
}
