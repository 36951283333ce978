// The activity feed: requests with their results, grouped by chain, the
// newest chain first. Hand-offs and the return of their results appear under
// the request from which they come.

import { html, nothing, repeat } from '../../vendor/lit-html.js';
import { busy, cancelJob, jobErrors, settleJob } from '../commands.js';
import { has, language, t } from '../i18n.js';
import { markdown } from '../markdown.js';
import { opened, setOpened, state, tell, update } from '../store.js';
import { cutTo, plain } from '../text.js';
import { took } from '../time.js';
import { answerForm } from './answer.js';
import { alertBox, avatar, because, button, copyText, empty, icon, nextTry, owner, said, status, summary, talk, time, why } from './parts.js';

/** Jobs shown at first and added with each "earlier", in whole chains. */
const STEP = 40;
/** Beyond these a text is folded. */
const FOLD = { text: { chars: 700, lines: 9 }, result: { chars: 1400, lines: 18 } };
const shownJobs = new Map();

const OPEN = new Set(['queued', 'running', 'waiting_input', 'resuming', 'cancelling', 'unknown']);
export const unfinished = (job) => OPEN.has(job.status);

/** Jobs by chain: newest chain first, within it oldest first. */
export function chains(jobs) {
  const found = new Map();
  for (const job of jobs) {
    if (!found.has(job.root_id)) found.set(job.root_id, []);
    found.get(job.root_id).push(job);
  }
  return [...found]
    .map(([id, list]) => ({ id, jobs: list.sort((a, b) => a.n - b.n) }))
    .sort((a, b) => b.jobs[0].n - a.jobs[0].n);
}

const long = (text, bound) => text.length > bound.chars || text.split('\n', bound.lines + 1).length > bound.lines;

function beginning(text, bound) {
  const lines = text.split('\n').slice(0, bound.lines).join('\n');
  return lines.length > bound.chars ? cutTo(lines, { chars: bound.chars, bytes: bound.chars * 4 }) : lines;
}

// The rendered Markdown of a job: kept while the job, the fold and the language stay.
const rendered = new WeakMap();

function prose(job, text, whole) {
  const name = `${whole} ${language()}`;
  const known = rendered.get(job);
  if (known?.name === name && known.text === text) return known.node;
  const node = document.createElement('div');
  node.className = 'prose';
  node.dir = 'auto';
  node.append(markdown(whole ? text : beginning(text, FOLD.result)));
  rendered.set(job, { name, text, node });
  return node;
}

const foldButton = (team, id, part, open, label) =>
  html`<button type="button" class="fold" aria-expanded=${open} aria-label=${label}
    @click=${() => setOpened(team, `${id}/${part}`, open ? undefined : 1)}>${icon(open ? 'right' : 'down')}${t(open ? 'text.less' : 'text.more')}</button>`;

function requestText(team, job) {
  const folds = long(job.text, FOLD.text);
  const open = !folds || opened(team, `${job.id}/text`);
  return html`<div class="request-text" dir="auto">${said(open ? job.text : `${beginning(job.text, FOLD.text)} …`)}</div>
    ${folds ? foldButton(team, job.id, 'text', Boolean(open), t(open ? 'text.lessOfRequest' : 'text.moreOfRequest')) : nothing}`;
}

async function copy(text) {
  const done = await copyText(text);
  tell(done ? t('text.copied') : t('text.notCopied'), done ? 'good' : 'bad');
}

function result(team, job, from) {
  if (!job.result) return nothing;
  if (!job.result.available) {
    if (job.error) return nothing;
    if (job.status === 'cancelled') return html`<p class="no-result">${t('result.cancelled')}</p>`;
    return html`<p class="no-result">${t('result.gone')} <a href=${talk(job.thread, team)}>${t('job.conversation')}</a></p>`;
  }
  const text = job.result.text ?? '';
  const folds = long(text, FOLD.result);
  const open = !folds || Boolean(opened(team, `${job.id}/result`));
  return html`<div class="result ${open ? '' : 'folded'}">
    <div class="result-head">${avatar(from, job.member_id ?? job.thread)}<span class="who">${said(from)}</span>
      ${job.completed_at ? time(job.completed_at) : nothing}
      <span class="grow"></span>
      <button type="button" class="sign-button" aria-label=${t('result.copy', { name: plain(from) })} title=${t('text.copy')} @click=${() => copy(text)}>${icon('copy')}</button></div>
    ${prose(job, text, open)}
    ${folds ? foldButton(team, job.id, 'result', open, t(open ? 'text.lessOfResult' : 'text.moreOfResult', { name: plain(from) })) : nothing}
    ${job.result.truncated ? html`<p class="note">${t('result.truncated')} <a href=${talk(job.thread, team)}>${t('job.conversation')}</a></p>` : nothing}
    ${job.result.truncated === null ? html`<p class="note">${t('result.maybeTruncated')}</p>` : nothing}
  </div>`;
}

const nameOf = (requester) => {
  if (requester.kind === 'owner') return t('you');
  return requester.member ?? t('requester.conversation');
};

function heading(job) {
  if (job.status === 'damaged') return html`<span class="who">${t('job.damaged')}</span>`;
  const from = job.requester;
  const sign = from.kind === 'owner' ? owner() : avatar(from.member ?? '?', from.member_id ?? from.thread);
  const to = job.member ?? t('requester.conversation');
  if (job.kind === 'receipt') {
    return html`${icon('reply')}<span class="who">${t('receipt.to')} ${said(job.member ?? nameOf(from))}</span>`;
  }
  return html`${sign}<span class="who">${said(nameOf(from))}</span>${icon('arrow')}<span class="who to">${said(to)}</span>`;
}

function details(team, job) {
  const facts = [
    [t('job.id'), html`<code>${said(job.id)}</code>`],
    job.run_id ? [t('job.run'), html`<code>${said(job.run_id)}</code>`] : null,
    job.request_id ? [t('job.requestId'), html`<code>${said(job.request_id)}</code>`] : null,
    job.created_at ? [t('job.created'), time(job.created_at)] : null,
    job.completed_at ? [t('job.completed'), html`${time(job.completed_at)}${job.created_at ? html` · ${took(job.created_at, job.completed_at)}` : nothing}`] : null,
  ].filter(Boolean);
  const name = `${job.id}/details`;
  const keep = (open) => {
    if (open !== Boolean(opened(team, name))) setOpened(team, name, open ? 1 : undefined);
  };
  return html`<details class="details" ?open=${Boolean(opened(team, name))} @toggle=${(event) => keep(event.target.open)}>
    ${summary(t('job.details'), keep)}
    <dl>${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    ${job.kind === 'receipt' && job.text ? html`<div class="request-text" dir="auto">${said(job.text)}</div>` : nothing}
    <div class="actions">
      ${toConversation(team, job)}
      ${unfinished(job) && job.status !== 'cancelling' ? button(t('job.cancel'), () => cancelJob(team, job), { kind: 'danger', icon: 'close', disabled: busy(`cancel/${job.id}`) }) : nothing}
    </div>
  </details>`;
}

/** The way into the job's conversation, if it is known. */
const toConversation = (team, job) =>
  job.thread ? html`<a class="button" href=${talk(job.thread, team)}>${icon('chat')}<span>${t('job.conversation')}</span></a>` : nothing;

/** How a person may end what the host does not end: the ways that the job names. */
function settle(team, job) {
  if (!job.settle?.length) return nothing;
  const off = busy(`settle/${job.id}`);
  const words = { unknown: 'settle', damaged: 'settle.damaged' }[job.status] ?? 'settle.stuck';
  return html`<div class="ask" role="group" aria-label=${t('settle.label')}>
    <p class="ask-title">${t(`${words}.title`)}</p><p>${t(`${words}.text`)} ${nextTry(job.reason)}</p>
    <div class="actions">${toConversation(team, job)}
      ${job.settle.includes('retry') ? button(t('settle.retry'), () => settleJob(team, job, 'retry'), { disabled: off }) : nothing}
      ${job.settle.includes('failed') ? button(t('settle.failed'), () => settleJob(team, job, 'failed'), { kind: 'danger', disabled: off }) : nothing}</div></div>`;
}

/** Whether the reason says more than the form below it. */
const tells = (job) => job.reason && !['waiting_for_answer', 'outcome_unknown'].includes(job.reason.code);

function failure(job) {
  if (!job.error) return nothing;
  const key = `failure.${job.error.code}`;
  return html`<div class="failure"><strong>${t('job.failed')}</strong> ${said(has(key) ? t(key) : job.error.message)}
    ${has(key) ? html`<span class="faint">${said(job.error.message)}</span>` : nothing}</div>`;
}

/** Why the last thing that a person did about this job failed. */
export function jobError(job) {
  const error = jobErrors.get(job.id);
  return error ? alertBox('bad', why(error)) : nothing;
}

export function jobCard(team, job, root) {
  return html`<div class="job ${root ? 'root' : 'step'} ${job.kind}" id="job-${job.id}" data-status=${job.status} tabindex="-1">
    <div class="job-head">${heading(job)}<span class="grow"></span>${status(job)}${time(job.created_at)}</div>
    ${job.kind === 'request' ? requestText(team, job) : nothing}
    ${tells(job) ? html`<p class="why">${because(job.reason)}</p>` : nothing}
    ${answerForm(team, job)}${settle(team, job)}
    ${result(team, job, job.member ?? nameOf(job.requester))}
    ${failure(job)}
    ${job.note ? html`<p class="note">${said(typeof job.note === 'string' ? job.note : job.note.message ?? '')}</p>` : nothing}
    ${jobError(job)}
    ${details(team, job)}
  </div>`;
}

const chainCard = (team, chain) => html`<article class="chain" aria-label=${t('feed.chain', { name: plain(chain.jobs[0].member ?? '') })}>
  ${jobCard(team, chain.jobs[0], true)}
  ${chain.jobs.length > 1 ? html`<ol class="steps">${repeat(chain.jobs.slice(1), (job) => job.id, (job) => html`<li>${jobCard(team, job, false)}</li>`)}</ol>` : nothing}
</article>`;

/** Shows enough chains that this job is on the page, and goes there. */
export function reveal(team, view, id) {
  const all = chains(view.jobs);
  const at = all.findIndex((chain) => chain.jobs.some((job) => job.id === id));
  if (at < 0) return;
  const needed = all.slice(0, at + 1).reduce((sum, chain) => sum + chain.jobs.length, 0);
  shownJobs.set(team, Math.max(shownJobs.get(team) ?? STEP, needed));
  update();
  requestAnimationFrame(() => setTimeout(() => {
    const card = document.getElementById(`job-${id}`);
    card?.scrollIntoView({ block: 'center' });
    card?.focus({ preventScroll: true });
  }, 30));
}

export function feed(team, view) {
  const all = chains(view.jobs);
  if (!all.length) return empty(t('feed.empty'), t('feed.emptyText'));
  const budget = shownJobs.get(team) ?? STEP;
  let jobs = 0;
  const shown = [];
  for (const chain of all) {
    if (shown.length && jobs + chain.jobs.length > budget) break;
    jobs += chain.jobs.length;
    shown.push(chain);
  }
  return html`<h2 class="off-screen">${t('feed.label')}</h2><div class="feed" role="feed" aria-label=${t('feed.label')} aria-busy=${view.loading && !view.detailed}>
    ${repeat(shown, (chain) => chain.id, (chain) => chainCard(team, chain))}
  </div>
  ${all.length > shown.length ? html`<div class="center">${button(t('feed.earlier', { n: all.length - shown.length }), () => {
      shownJobs.set(team, Math.max(budget, jobs) + STEP);
      update();
    }, { kind: 'earlier' })}</div>` : nothing}
  ${view.jobs.length && state.route.tab === 'activity' ? html`<p class="faint center">${t('feed.bounded', { n: view.team.counts.requests })}</p>` : nothing}`;
}
