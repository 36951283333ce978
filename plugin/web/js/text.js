// Texts: the component's bounds and trimming, and marks that would not be seen.

/** Bounds on a trimmed text: Unicode scalar values and UTF-8 bytes. */
export const BOUNDS = {
  teamName: { chars: 80, bytes: 160 },
  goal: { chars: 2000, bytes: 4000 },
  memberName: { chars: 80, bytes: 160 },
  text: { chars: 4000, bytes: 8000 },
};
/** A structured answer to an interrupt, as compact JSON, in bytes. */
export const RESPONSE_BYTES = 8000;

const encoder = new TextEncoder();

export const utf8 = (text) => encoder.encode(text).length;

/** Scalar values and bytes of the trimmed text. */
export function measure(text) {
  const trimmed = text.trim();
  return { chars: [...trimmed].length, bytes: utf8(trimmed) };
}

/** Why a text may not be sent: '', 'empty', 'chars', 'bytes', 'nul' or 'surrogate'. */
export function fault(text, bound) {
  const trimmed = text.trim();
  if (!trimmed) return 'empty';
  if (trimmed.includes('\0')) return 'nul';
  if (/\p{Surrogate}/u.test(trimmed)) return 'surrogate';
  const size = measure(trimmed);
  if (size.chars > bound.chars) return 'chars';
  if (size.bytes > bound.bytes) return 'bytes';
  return '';
}

// Control characters, line separators, and characters that are invisible or
// change the direction of text: a name may not hold them.
const HIDDEN_IN_NAMES =
  /[\p{Cc}\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** A name as the component would store it, without what it refuses in names. */
export const cleanName = (text) => text.replace(HIDDEN_IN_NAMES, '').normalize('NFC').trim();

/** Whether a name holds what the component refuses in names. */
export const hiddenInName = (text) => text.trim().normalize('NFC').match(HIDDEN_IN_NAMES)?.[0] ?? '';

/** The longest beginning within both bounds that ends on a whole character. */
export function cutTo(text, bound) {
  let out = '';
  let chars = 0;
  let bytes = 0;
  for (const char of text) {
    const size = utf8(char);
    if (chars + 1 > bound.chars || bytes + size > bound.bytes) break;
    out += char;
    chars += 1;
    bytes += size;
  }
  return out.trim();
}

/**
 * A member label from an agent's name: within its bounds and different from
 * all labels in `taken`, also after it was cut.
 */
export function uniqueLabel(name, taken) {
  const used = new Set(taken.map((label) => label.trim().normalize('NFC')));
  const base = cutTo(cleanName(name), BOUNDS.memberName) || 'Member';
  if (!used.has(base)) return base;
  for (let n = 2; ; n += 1) {
    const tail = ` ${n}`;
    const room = { chars: BOUNDS.memberName.chars - tail.length, bytes: BOUNDS.memberName.bytes - tail.length };
    const label = cutTo(base, room) + tail;
    if (!used.has(label)) return label;
  }
}

// What is shown as a mark: it is not seen, or reorders the text beside it.
// Joiners inside emoji and scripts that need them stay; see `shown`.
const MARKED =
  /[\p{Cc}\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200d\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}\p{Surrogate}]/u;
const JOINED = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]$/u;
const NEEDS_JOINER = /[\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Khmer}\p{Script=Mongolian}]$/u;

/** Pieces of a text: `{ text }`, or `{ mark }` for a character to be named. */
export function pieces(text) {
  if (!MARKED.test(text)) return text ? [{ text }] : [];
  const out = [];
  let plain = '';
  let flag = false;
  for (const char of text) {
    const tag = char >= '\u{e0020}' && char <= '\u{e007f}';
    flag = char === '\u{1f3f4}' || (flag && tag);
    const joiner = char === '\u200d' || char === '\u200c';
    const keep =
      char === '\n' || char === '\t' || (tag && flag) ||
      (joiner && (NEEDS_JOINER.test(plain) || (char === '\u200d' && JOINED.test(plain))));
    if (keep || !MARKED.test(char)) {
      plain += char;
    } else {
      if (plain) out.push({ text: plain });
      plain = '';
      out.push({ mark: `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}` });
    }
  }
  if (plain) out.push({ text: plain });
  return out;
}

/** The text with marks written out, for attributes and titles. */
export const plain = (text) => pieces(String(text ?? '')).map((p) => p.text ?? `[${p.mark}]`).join('');

/** Compared without case. */
export const fold = (text) => text.normalize('NFC').toLowerCase();

/** Two letters that stand for a name. */
export function initials(name) {
  const words = cleanName(String(name ?? '')).split(/[\s._-]+/u).filter(Boolean);
  const first = [...(words[0] ?? '?')][0] ?? '?';
  const wide = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(first);
  const second = words.length > 1 && !wide ? [...words[words.length - 1]][0] : '';
  return (first + second).toUpperCase();
}
