// The composer: a text, and recipients picked with `@`, from the members or by
// chip. Only what was picked gets work; names that were merely typed do not.

import { html, live, nothing, repeat } from '../../vendor/lit-html.js';
import { busy, draftOf, sendDraft, sendErrors, setDraft } from '../commands.js';
import { t } from '../i18n.js';
import { state, update, viewOf } from '../store.js';
import { BOUNDS, fault, fold, measure, plain } from '../text.js';
import { alertBox, avatar, icon, said, why } from './parts.js';

/** The open picker: which team, where the `@` is, what follows it. */
let picker = null;

const EDGE = /^[\s(\[{"'“‘「『（【<,;:/，。；：、—-]$/u;
const TAIL = /[\s.,;:!?)\]}"'”’」』）】>，。；：！？、]+$/u;

/** The `@` before the caret that a person is typing now. */
function mentionAt(text, caret) {
  const before = text.slice(0, caret);
  const at = before.lastIndexOf('@');
  if (at < 0 || (at > 0 && !EDGE.test(before[at - 1]))) return null;
  const query = before.slice(at + 1);
  if (query.includes('\n') || [...query].length > 80 || /^\s/.test(query)) return null;
  return { at, query };
}

/** Members that fit: the exact name first, the longer of two that are both written out before the shorter. */
function candidates(members, query) {
  const whole = fold(query);
  const bare = fold(query.replace(TAIL, ''));
  const rank = (member) => {
    const name = fold(member.name);
    if (name === whole || name === bare) return 0;
    if (bare && name.startsWith(bare)) return 1;
    if (bare && whole.startsWith(name)) return 2;
    if (name.includes(bare) || fold(member.agent).includes(bare)) return 3;
    return 9;
  };
  return members
    .map((member) => ({ member, rank: rank(member) }))
    .filter((one) => one.rank < 9 && (one.rank !== 2 || TAIL.test(query.slice(one.member.name.length) || '.')))
    .sort((a, b) => a.rank - b.rank || b.member.name.length * (a.rank === 2) - a.member.name.length * (a.rank === 2))
    .map((one) => one.member);
}

function look(team, area) {
  const found = mentionAt(area.value, area.selectionStart);
  const list = found ? candidates(viewOf(team).team.members, found.query) : [];
  picker = list.length ? { team, ...found, list, index: picker?.team === team && picker.at === found.at ? Math.min(picker.index, list.length - 1) : 0 } : null;
  update();
}

/** Replaces a part of the text at once, before the next key arrives; it can be undone. */
function insert(area, from, to, text) {
  area.focus();
  area.setSelectionRange(from, to);
  const whole = area.value.slice(0, from) + text + area.value.slice(to);
  document.execCommand('insertText', false, text);
  if (area.value !== whole) area.value = whole;
  area.setSelectionRange(from + text.length, from + text.length);
}

function pick(team, member) {
  const area = document.querySelector('#composer-text');
  if (picker && area) {
    const typed = picker.query.replace(TAIL, '');
    const taken = fold(typed).startsWith(fold(member.name)) ? typed.slice(0, member.name.length) : typed;
    const end = picker.at + 1 + taken.length;
    const rest = area.value.slice(end);
    const gap = rest === '' || /^[\p{L}\p{N}]/u.test(rest) ? ' ' : '';
    insert(area, picker.at, end, `@${member.name}${gap}`);
  }
  const draft = structuredClone(draftOf(team));
  if (area) draft.text = area.value;
  if (!draft.to.includes(member.id)) draft.to.push(member.id);
  picker = null;
  sendErrors.delete(team);
  setDraft(team, draft);
}

/** Adds or takes away a recipient. */
export function toggleRecipient(team, id) {
  const draft = structuredClone(draftOf(team));
  draft.to = draft.to.includes(id) ? draft.to.filter((one) => one !== id) : [...draft.to, id];
  sendErrors.delete(team);
  setDraft(team, draft);
}

function typed(team, event) {
  const draft = structuredClone(draftOf(team));
  draft.text = event.target.value;
  sendErrors.delete(team);
  setDraft(team, draft);
  look(team, event.target);
}

function keys(team, event) {
  // While an input method composes, its keys are its own.
  if (event.isComposing || event.keyCode === 229) return;
  if ((event.metaKey || event.ctrlKey) && event.key === 'Enter') {
    event.preventDefault();
    picker = null;
    sendDraft(team);
    return;
  }
  if (!picker) return;
  const { list } = picker;
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    event.preventDefault();
    picker.index = (picker.index + (event.key === 'ArrowDown' ? 1 : list.length - 1)) % list.length;
    update();
  } else if ((event.key === 'Enter' && !event.shiftKey) || event.key === 'Tab') {
    event.preventDefault();
    pick(team, list[picker.index]);
  } else if (event.key === 'Escape') {
    event.preventDefault();
    picker = null;
    update();
  }
}

function pickerList(team) {
  if (picker?.team !== team) return nothing;
  return html`<ul class="picker" id="composer-picker" role="listbox" aria-label=${t('composer.picker')}>
    ${picker.list.map((member, i) => html`<li role="option" id="pick-${i}" aria-selected=${i === picker.index}
        class=${i === picker.index ? 'on' : ''}
        @mousedown=${(event) => { event.preventDefault(); pick(team, member); }}>
        ${avatar(member.name, member.id)}<span class="grow">${said(member.name)}</span><span class="faint">${said(member.agent)}</span></li>`)}
  </ul>`;
}

/** Names near to what was typed after an `@`, when no member is picked. */
function near(members, text) {
  const words = [...text.matchAll(/@([^\s@]{1,80})/gu)].map((found) => fold(found[1].replace(TAIL, '')));
  const close = members.filter((member) => {
    const name = fold(member.name);
    return words.some((word) => word && (name.startsWith(word[0]) || name.includes(word) || word.includes(name)));
  });
  return (close.length ? close : members).slice(0, 8);
}

function errors(team, view, draft) {
  const error = sendErrors.get(team);
  if (!error) return nothing;
  if (error.code === 'nobody') {
    return alertBox('ask', html`${t('composer.nobody')}<span class="chips near">${near(view.team.members, draft.text).map(
      (member) => html`<button type="button" class="chip add" @click=${() => toggleRecipient(team, member.id)}>${icon('plus')}${said(member.name)}</button>`)}</span>`);
  }
  if (error.code) return alertBox('bad', boundsText(error.code.slice(5), draft.text));
  const names = Object.entries(error.failures).map(([id, failure]) => {
    const member = view.team.members.find((one) => one.id === id);
    return html`<div>${said(member?.name ?? id)}: ${why(failure)}</div>`;
  });
  return alertBox('bad', html`<strong>${t('composer.failed')}</strong>${names}`);
}

/** What is wrong with a text's size, in words. */
export function boundsText(wrong, text, bound = BOUNDS.text) {
  const size = measure(text);
  return t(`bounds.${wrong}`, { ...size, maxChars: bound.chars, maxBytes: bound.bytes });
}

/** A quiet count that speaks up near the bounds. */
export function counter(text, bound, id) {
  const size = measure(text);
  const part = Math.max(size.chars / bound.chars, size.bytes / bound.bytes);
  const over = part > 1;
  if (part < 0.7) return html`<span class="counter" id=${id}></span>`;
  const bytes = size.bytes / bound.bytes > size.chars / bound.chars;
  return html`<span class="counter ${over ? 'over' : ''}" id=${id} aria-live="polite">${
    bytes ? t('bounds.countBytes', { n: size.bytes, max: bound.bytes }) : t('bounds.countChars', { n: size.chars, max: bound.chars })
  }</span>`;
}

/** Who starts to work when this is sent, and whose queue it joins. */
function wakes(view, draft) {
  const chosen = view.team.members.filter((member) => draft.to.includes(member.id));
  if (!chosen.length) return html`<span>${t('composer.hint')}</span>`;
  const soon = chosen.filter((member) => member.state === 'idle');
  const later = chosen.filter((member) => member.state !== 'idle');
  const names = (list) => list.map((member, i) => html`${i ? t('list.comma') : nothing}${said(member.name)}`);
  if (!view.team.connected) return html`<span>${t('composer.disconnected')}</span>`;
  return html`<span>${soon.length ? html`${t('composer.wakes')} ${names(soon)}${t('sentence.end')} ` : nothing}${
    later.length ? html`${t('composer.queues')} ${names(later)}${t('sentence.end')} ` : nothing}${
    chosen.length > 1 ? t('composer.separate', { n: chosen.length }) : nothing}</span>`;
}

export function composer(team) {
  const view = viewOf(team);
  const draft = draftOf(team);
  const sending = busy(`send/${team}`);
  const wrong = fault(draft.text, BOUNDS.text);
  const full = view.team.counts.requests_left < 1;
  const chosen = draft.to.map((id) => view.team.members.find((member) => member.id === id)).filter(Boolean);
  const open = picker?.team === team;
  return html`<section class="composer" aria-label=${t('composer.label')}>
    <div class="chips" role="group" aria-label=${t('composer.recipients')}>
      ${repeat(chosen, (member) => member.id, (member) => html`<span class="chip">${avatar(member.name, member.id)}${said(member.name)}
        <button type="button" aria-label=${t('composer.remove', { name: plain(member.name) })} @click=${() => toggleRecipient(team, member.id)}>${icon('close')}</button></span>`)}
      ${chosen.length ? nothing : html`<span class="faint">${t('composer.none')}</span>`}
    </div>
    <div class="field-frame">
      <textarea id="composer-text" rows="3" dir="auto" .value=${live(draft.text)} placeholder=${t('composer.placeholder')}
        aria-label=${t('composer.text')} aria-autocomplete="list" aria-haspopup="listbox"
        aria-controls=${open ? 'composer-picker' : nothing} aria-activedescendant=${open ? `pick-${picker.index}` : nothing}
        aria-invalid=${wrong === 'chars' || wrong === 'bytes'} aria-describedby="composer-count composer-wakes"
        @input=${(event) => typed(team, event)} @keydown=${(event) => keys(team, event)}
        @click=${(event) => look(team, event.target)} @blur=${() => { picker = null; update(); }}></textarea>
      ${pickerList(team)}
    </div>
    ${errors(team, view, draft)}
    ${wrong === 'chars' || wrong === 'bytes' ? html`<p class="field-error" role="alert">${boundsText(wrong, draft.text)}</p>` : nothing}
    <div class="composer-foot">
      <div class="faint wakes" id="composer-wakes">${wakes(view, draft)}</div>
      ${counter(draft.text, BOUNDS.text, 'composer-count')}
      <button type="button" class="button primary" id="composer-send" ?disabled=${sending || full || state.phase !== 'ready'}
        title=${t('composer.keys')} @click=${() => sendDraft(team)}>
        <span>${sending ? t('composer.sending') : t('composer.send')}</span><kbd aria-hidden="true">${navigator.platform?.startsWith('Mac') ? '⌘' : 'Ctrl'} ↵</kbd></button>
    </div>
  </section>`;
}
