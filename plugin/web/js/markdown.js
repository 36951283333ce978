// Markdown of untrusted texts as DOM. Three walls, each of which would do:
// micromark turns raw HTML into text; its output is parsed in a document that
// loads and runs nothing; and only the elements and attributes below are
// copied from there. The page's policy is a fourth.

import { gfm, gfmHtml, micromark } from '../vendor/micromark.js';
import { t } from './i18n.js';
import { pieces } from './text.js';

const ELEMENTS = new Set([
  'P', 'BR', 'HR', 'EM', 'STRONG', 'DEL', 'CODE', 'PRE', 'BLOCKQUOTE', 'UL', 'OL', 'LI', 'TABLE', 'THEAD', 'TBODY', 'TR', 'TH', 'TD', 'SUP',
]);
// Headings of a result rank below the page's own.
const HEADINGS = { H1: 'h3', H2: 'h3', H3: 'h4', H4: 'h5', H5: 'h6', H6: 'h6' };
/** Longer texts are shown as they are: their structure would cost too much. */
const MAX = 64_000;
/** Deeper nesting is flattened. */
const DEPTH = 40;

/** Text nodes, with hidden characters named. */
export function textNodes(text) {
  return pieces(text).map((piece) => {
    if (piece.text !== undefined) return document.createTextNode(piece.text);
    const mark = document.createElement('span');
    mark.className = 'hidden-char';
    mark.textContent = piece.mark;
    mark.title = t('text.hidden', { code: piece.mark });
    return mark;
  });
}

function address(href) {
  try {
    const url = new URL(href);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : '';
  } catch {
    return '';
  }
}

function link(node, depth) {
  const href = address(node.getAttribute('href') ?? '');
  if (!href) {
    const span = document.createElement('span');
    copyChildren(node, span, depth);
    return span;
  }
  const a = document.createElement('a');
  a.href = href;
  a.target = '_blank';
  a.rel = 'noopener noreferrer nofollow';
  a.title = href;
  copyChildren(node, a, depth);
  return a;
}

/** An image is never loaded: its text and its address are shown. */
function image(node) {
  const span = document.createElement('span');
  span.className = 'no-image';
  const alt = node.getAttribute('alt') || t('text.image');
  const source = node.getAttribute('src') ?? '';
  span.append('🖼 ', ...textNodes(alt));
  const href = address(source);
  if (href) {
    const a = document.createElement('a');
    a.href = href;
    a.target = '_blank';
    a.rel = 'noopener noreferrer nofollow';
    a.textContent = new URL(href).host || href;
    span.append(' (', a, ')');
  }
  return span;
}

function copy(node, depth) {
  if (node.nodeType === Node.TEXT_NODE) return textNodes(node.data);
  if (node.nodeType !== Node.ELEMENT_NODE) return [];
  const name = node.tagName;
  if (depth > DEPTH) return textNodes(node.textContent);
  if (name === 'A') return [link(node, depth)];
  if (name === 'IMG') return [image(node)];
  if (name === 'INPUT') return [document.createTextNode(node.hasAttribute('checked') ? '☑ ' : '☐ ')];
  if (HEADINGS[name] || ELEMENTS.has(name)) {
    const made = document.createElement(HEADINGS[name] ?? name.toLowerCase());
    if (name === 'OL' && /^\d{1,9}$/.test(node.getAttribute('start') ?? '')) made.start = Number(node.getAttribute('start'));
    if (name === 'LI' && node.querySelector(':scope > input, :scope > p > input')) made.className = 'check';
    const align = node.getAttribute('align');
    if ((name === 'TD' || name === 'TH') && ['right', 'center'].includes(align)) made.className = align;
    if (['P', 'LI', 'TD', 'TH', 'BLOCKQUOTE'].includes(name) || HEADINGS[name]) made.dir = 'auto';
    copyChildren(node, made, depth);
    if (name === 'TABLE' || name === 'PRE') {
      // A wide one scrolls by itself, also by keyboard.
      const frame = document.createElement('div');
      frame.className = 'wide';
      frame.tabIndex = 0;
      frame.setAttribute('role', 'group');
      frame.setAttribute('aria-label', t(name === 'PRE' ? 'text.code' : 'text.table'));
      frame.append(made);
      return [frame];
    }
    return [made];
  }
  const out = document.createDocumentFragment();
  copyChildren(node, out, depth);
  return [out];
}

function copyChildren(from, to, depth) {
  for (const child of from.childNodes) to.append(...copy(child, depth + 1));
}

/** A fragment for a Markdown text. */
export function markdown(text) {
  const out = document.createDocumentFragment();
  if (text.length > MAX) {
    const pre = document.createElement('p');
    pre.className = 'as-is';
    pre.append(...textNodes(text));
    out.append(pre);
    return out;
  }
  const made = micromark(text, { extensions: [gfm()], htmlExtensions: [gfmHtml()], allowDangerousHtml: false });
  copyChildren(new DOMParser().parseFromString(made, 'text/html').body, out, 0);
  return out;
}
