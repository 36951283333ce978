// A member's conversation as the host keeps it, and a message of one's own.

import { html, live, nothing, repeat } from '../../vendor/lit-html.js';
import { ApiError, conversation as read, newId, say, stopRun } from '../api.js';
import { load, save } from '../drafts.js';
import { language, t } from '../i18n.js';
import { markdown } from '../markdown.js';
import { state, update } from '../store.js';
import { fold, plain } from '../text.js';
import { alertBox, avatar, button, empty, href, icon, owner, said, time, why } from './parts.js';

let shown = null;
let timer = 0;

/** Reads the conversation that is open: what is new since the last read. */
export async function refreshConversation() {
  const { thread } = state.route;
  if (state.route.name !== 'conversation') {
    shown = null;
    return;
  }
  if (shown?.thread !== thread) shown = { thread, facts: null, messages: [], error: null, loading: false, again: false };
  const now = shown;
  if (now.loading) {
    now.again = true;
    return;
  }
  now.loading = true;
  try {
    for (;;) {
      const last = now.messages.at(-1)?.number;
      const reply = await read(thread, last);
      now.facts = reply.conversation;
      now.messages.push(...reply.messages);
      if (!reply.more) break;
    }
    now.error = null;
  } catch (error) {
    now.error = error instanceof ApiError ? error : new ApiError('network', '');
  }
  now.loading = false;
  update();
  // A run's steps do not change a team, so they are polled while it works.
  clearTimeout(timer);
  if (now.facts?.active_run && !document.hidden) timer = setTimeout(refreshConversation, 1500);
  if (now.again && shown === now) {
    now.again = false;
    await refreshConversation();
  }
}

function memberOf(thread) {
  for (const view of state.views.values()) {
    const member = view.team?.members.find((one) => one.thread === thread);
    if (member) return { team: view.team, member };
  }
  return null;
}

const rendered = new WeakMap();

function prose(message) {
  const known = rendered.get(message);
  if (known?.language === language()) return known.node;
  const node = document.createElement('div');
  node.className = 'prose';
  node.dir = 'auto';
  node.append(markdown(message.text));
  rendered.set(message, { language: language(), node });
  return node;
}

function pretty(value) {
  if (typeof value !== 'string') return JSON.stringify(value, null, 2);
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

/** A result is sent as a JSON document; a request is somebody's words. */
const isDocument = (text) => /^\s*\{/.test(text) && pretty(text) !== text;

function author(message, place) {
  const from = message.provenance;
  if (message.role === 'assistant') return { name: place?.member.name ?? shown.facts?.agent ?? '', sign: avatar(place?.member.name ?? shown.facts?.agent, place?.member.id ?? 'agent') };
  if (message.role === 'tool') return { name: t('talk.tool'), sign: nothing };
  if (from?.kind === 'person') return { name: t('you'), sign: owner() };
  return { name: t('talk.team'), sign: html`<span class="avatar quiet" aria-hidden="true">${icon('inbox')}</span>` };
}

/** The text between the marks of a message that the team sent: the request or the result itself. */
const framed = (text) => /\n<<< (\S{1,80})\n([\s\S]*)\n>>> \1\s*$/.exec(text)?.[2];

const humanText = (text) => html`<div class="request-text" dir="auto" tabindex="0" role="group" aria-label=${t('talk.text')}>${said(text)}</div>`;

function human(message) {
  const inner = message.provenance?.kind === 'person' ? undefined : framed(message.text);
  if (inner === undefined) return humanText(message.text);
  return isDocument(inner) ? html`<pre class="document" tabindex="0">${said(pretty(inner))}</pre>` : humanText(inner);
}

/** What a message of the team carries besides its request or result: all of its text, and where it comes from. */
function whole(message) {
  if (message.role !== 'human' || !message.provenance || message.provenance.kind === 'person') return nothing;
  return html`<details class="call"><summary>${t('talk.whole')}</summary>${framed(message.text) === undefined ? nothing : html`<pre tabindex="0">${said(message.text)}</pre>`}
    <p>${t('talk.provenance')}</p><pre tabindex="0">${said(JSON.stringify(message.provenance, null, 2))}</pre></details>`;
}

function messageRow(message, place) {
  const { name, sign } = author(message, place);
  const calls = message.tool_calls ?? [];
  if (message.role === 'tool') {
    return html`<li class="message tool"><details><summary>${t('talk.result')} <span class="faint">${said(message.text.slice(0, 90))}</span></summary><pre tabindex="0">${said(pretty(message.text))}</pre></details></li>`;
  }
  return html`<li class="message ${message.role}"><div class="message-head">${sign}<span class="who">${said(name)}</span>${time(message.created_at)}</div>
    ${message.text ? (message.role === 'assistant' ? prose(message) : human(message)) : nothing}
    ${calls.map((call) => html`<details class="call"><summary>${t('talk.calls')} <code>${said(call.name)}</code></summary><pre tabindex="0">${said(pretty(call.arguments))}</pre></details>`)}
    ${whole(message)}</li>`;
}

const draftName = (thread) => `talk/${thread}`;

async function post(thread) {
  const draft = load(draftName(thread), { text: '', key: null });
  const text = draft.text.trim();
  if (!text || shown.posting) return;
  if (!draft.key || draft.sent !== text) Object.assign(draft, { key: newId(), sent: text });
  save(draftName(thread), draft);
  shown.posting = true;
  shown.postError = null;
  update();
  try {
    await say(thread, draft.key, text);
    const now = load(draftName(thread), draft);
    save(draftName(thread), now.text.trim() === text ? null : { text: now.text, key: null });
  } catch (error) {
    shown.postError = error;
  }
  shown.posting = false;
  update();
  refreshConversation();
}

async function stop(thread, run) {
  shown.stopping = run;
  shown.postError = null;
  update();
  try {
    await stopRun(thread, run);
  } catch (error) {
    shown.postError = error;
  }
  shown.stopping = null;
  update();
  refreshConversation();
}

/** The run that is at work or waits for an approval, which can be stopped by itself where no job of a team is cancelled for it. */
function atWork(thread, title) {
  const { active_run: active, waiting_run: waiting } = shown.facts;
  const run = active ?? waiting;
  if (!run) return nothing;
  return html`<div class="at-work"><p class="status ${active ? 'busy' : 'ask'}" role="status"><span class="dot"></span>${t(active ? 'talk.working' : 'talk.waiting', { name: plain(title) })}</p>
    ${button(t('talk.stop'), () => stop(thread, run), { kind: 'danger', icon: 'close', disabled: shown.stopping === run })}</div>`;
}

export function conversation() {
  const { thread } = state.route;
  const place = memberOf(thread);
  const back = place ? href('team', place.team.id) : href('now');
  if (!shown || shown.thread !== thread || (!shown.facts && !shown.error)) return html`<div class="page narrow"><p class="faint" role="status">${t('loading')}</p></div>`;
  if (!shown.facts) return html`<div class="page narrow"><p><a href=${back}>${icon('back')} ${t('back')}</a></p>${shown.error.code === 'conversation_not_found' ? empty(t('talk.none'), why(shown.error)) : alertBox('bad', why(shown.error), button(t('retry'), refreshConversation))}</div>`;
  const draft = load(draftName(thread), { text: '', key: null });
  const title = place ? place.member.name : shown.facts.title;
  return html`<div class="page narrow talk">
    <p class="crumbs"><a href=${back}>${icon('back')}${place ? said(place.team.name) : t('nav.now')}</a></p>
    <h1 dir="auto">${said(title)}</h1><p class="lede">${t('talk.lede')} <span class="faint">${said(shown.facts.agent)}</span></p>
    ${shown.error ? alertBox('bad', why(shown.error), button(t('retry'), refreshConversation)) : nothing}
    ${shown.messages.length ? html`<h2 class="off-screen">${t('talk.messages')}</h2><ol class="messages" aria-label=${t('talk.messages')}>${repeat(shown.messages, (message) => message.number, (message) => messageRow(message, place))}</ol>` : empty(t('talk.empty'), t('talk.emptyText'))}
    ${atWork(thread, title)}
    <section class="composer" aria-label=${t('talk.say')}>
      ${place ? html`<p class="faint">${t('talk.caution')} <a href=${back}>${t('talk.useTeam')}</a></p>` : nothing}
      <div class="field-frame"><textarea id="talk-text" rows="2" dir="auto" aria-label=${t('talk.say')} placeholder=${t('talk.say')} .value=${live(draft.text)}
        @input=${(event) => { save(draftName(thread), event.target.value ? { ...draft, text: event.target.value } : null); update(); }}
        @keydown=${(event) => { if (!event.isComposing && event.keyCode !== 229 && (event.metaKey || event.ctrlKey) && event.key === 'Enter') { event.preventDefault(); post(thread); } }}></textarea></div>
      ${shown.postError ? alertBox('bad', why(shown.postError)) : nothing}
      <div class="composer-foot"><span class="grow"></span>${button(t('composer.send'), () => post(thread), { kind: 'primary', disabled: Boolean(shown.posting) || !fold(draft.text).trim() || Boolean(shown.facts.active_run ?? shown.facts.waiting_run) })}</div>
    </section></div>`;
}
