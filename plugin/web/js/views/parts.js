// Small pieces that many views use.

import { html, nothing } from '../../vendor/lit-html.js';
import { errorText, has, t } from '../i18n.js';
import { initials, pieces, plain } from '../text.js';
import { brief, full } from '../time.js';

/** An untrusted text: isolated from the text beside it, hidden characters named. */
export const said = (text) =>
  html`<bdi>${pieces(String(text ?? '')).map((piece) =>
    piece.text !== undefined
      ? piece.text
      : html`<span class="hidden-char" title=${t('text.hidden', { code: piece.mark })}>${piece.mark}</span>`,
  )}</bdi>`;

/** Why something failed: a refusal may repeat what others wrote. */
export const why = (error) => said(errorText(error));

export const time = (iso) =>
  iso ? html`<time datetime=${iso} title=${full(iso)}>${brief(iso)}</time>` : nothing;

/** A number of hue slots that the style sheet colours. */
const HUES = 8;

/** A member's sign: letters on a quiet colour that stays the same. */
export function avatar(name, seed = name, kind = '') {
  let hash = 0;
  for (const char of String(seed)) hash = (hash * 31 + char.codePointAt(0)) >>> 0;
  return html`<span class="avatar ${kind || `hue-${hash % HUES}`}" aria-hidden="true">${initials(name)}</span>`;
}

export const owner = () => html`<span class="avatar you" aria-hidden="true">${icon('person')}</span>`;

const STATUS_KIND = {
  queued: 'quiet', running: 'busy', waiting_input: 'ask', resuming: 'busy', cancelling: 'quiet', completed: 'good',
  failed: 'bad', cancelled: 'quiet', unknown: 'ask', damaged: 'bad',
};

export const status = (job) =>
  html`<span class="status ${STATUS_KIND[job.status] ?? 'quiet'}"><span class="dot"></span>${
    has(`status.${job.status}`) ? t(`status.${job.status}`) : job.status
  }</span>`;

/** When what waits is tried again, if that is still to come. */
export const nextTry = (reason) =>
  reason?.next_at && new Date(reason.next_at) > new Date() ? html` ${t('reason.next')} ${time(reason.next_at)}${t('sentence.end')}` : nothing;

/** Why a job or team waits: known reasons in the viewer's language. */
export function because(reason) {
  if (!reason) return nothing;
  const key = `reason.${reason.code}`;
  const text = has(key) ? t(key) : reason.message;
  return html`${said(text)}${nextTry(reason)}`;
}

const PATHS = {
  plus: 'M8 3v10M3 8h10',
  close: 'M4 4l8 8M12 4l-8 8',
  menu: 'M2 4h12M2 8h12M2 12h12',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5L14 14',
  copy: 'M6 5.5h7v8H6zM10 5.5V3H3v8h3',
  down: 'M4 6l4 4 4-4',
  right: 'M6 4l4 4-4 4',
  arrow: 'M3 8h10M9 4l4 4-4 4',
  back: 'M13 8H3M7 4L3 8l4 4',
  reply: 'M6 4L3 7l3 3M3 7h6a4 4 0 0 1 4 4v1',
  person: 'M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4',
  warn: 'M8 2.5l6 11H2zM8 6.5v3.2M8 11.6v.2',
  star: 'M8 2.5l1.7 3.5 3.8.5-2.8 2.7.7 3.8L8 11.2 4.6 13l.7-3.8L2.5 6.5l3.8-.5z',
  chat: 'M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z',
  inbox: 'M2.5 9l2-6h7l2 6v4h-11zM2.5 9h3.2l.8 1.5h3L10.3 9h3.2',
  link: 'M7 4.5L8.5 3a2.5 2.5 0 0 1 3.5 3.5L10.5 8M9 11.5L7.5 13A2.5 2.5 0 0 1 4 9.5L5.5 8M6.5 9.5l3-3',
  check: 'M3 8.5l3.2 3L13 4.5',
};

export const icon = (name) =>
  html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d=${PATHS[name]} /></svg>`;

export const button = (label, press, { kind = '', icon: sign, disabled = false, title = '', pressed } = {}) =>
  html`<button type="button" class="button ${kind}" ?disabled=${disabled} title=${title || nothing}
    aria-pressed=${pressed ?? nothing} @click=${press}>${sign ? icon(sign) : nothing}<span>${label}</span></button>`;

/** A button of which only the sign is seen. */
export const signButton = (label, sign, press, kind = '') =>
  html`<button type="button" class="sign-button ${kind}" aria-label=${plain(label)} title=${plain(label)} @click=${press}>${icon(sign)}</button>`;

export const alertBox = (kind, content, actions = nothing) =>
  html`<div class="alert ${kind}" role=${kind === 'bad' ? 'alert' : 'status'}>${icon('warn')}<div class="alert-text">${content}</div>${actions}</div>`;

export const empty = (title, text, more = nothing) =>
  html`<div class="empty"><p class="empty-title">${title}</p><p>${text}</p>${more}</div>`;

/**
 * The summary of a `details` element whose state is kept by `keep`. A press is
 * kept at once: the element's own event comes later than a reload can.
 */
export const summary = (label, keep) =>
  html`<summary @click=${(event) => keep(!event.currentTarget.parentElement.open)}>${label}</summary>`;

/** Copies a text, also where the clipboard interface is missing. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'off-screen';
    (document.querySelector('dialog[open]') ?? document.body).append(area);
    area.select();
    let done = false;
    try {
      done = document.execCommand('copy');
    } catch {
      done = false;
    }
    area.remove();
    return done;
  }
}

/** Where a hash address leads; parts are encoded. */
export const href = (...parts) => `#/${parts.map(encodeURIComponent).join('/')}`;

/** Where a conversation is read; `team`: the team that it belongs to. */
export const talk = (thread, team) => (team ? href('conversation', thread, team) : href('conversation', thread));
