// Answers to what a job asks: a text for a clarification, explicit JSON for
// interrupts. The page proposes nothing and sends only what a person wrote.

import { html, live, nothing } from '../../vendor/lit-html.js';
import { answerOf, busy, sendAnswer, setAnswer } from '../commands.js';
import { t } from '../i18n.js';
import { BOUNDS, fault, plain, RESPONSE_BYTES, utf8 } from '../text.js';
import { boundsText, counter } from './composer.js';
import { said, talk } from './parts.js';

function submitKeys(event, submit) {
  if (event.isComposing || event.keyCode === 229) return;
  if ((event.metaKey || event.ctrlKey) && event.key === 'Enter') {
    event.preventDefault();
    submit();
  }
}

function type(team, job, text) {
  setAnswer(team, job, text ? { ...answerOf(team, job), text } : null);
}

function question(team, job) {
  const answer = answerOf(team, job);
  const wrong = fault(answer.text, BOUNDS.text);
  const shown = wrong && wrong !== 'empty';
  const sending = busy(`answer/${job.id}`);
  const submit = () => {
    const { text } = answerOf(team, job);
    if (!fault(text, BOUNDS.text) && !sending) sendAnswer(team, job, text.trim());
  };
  const id = `answer-${job.id}`;
  return html`<div class="ask" role="group" aria-label=${t('answer.question', { name: plain(job.member ?? '') })}>
    <p class="ask-title">${t('answer.asks', { name: plain(job.member ?? '') })}</p>
    <p class="ask-text" dir="auto">${said(job.question.text)}</p>
    ${job.question.options?.length ? html`<div class="chips" role="group" aria-label=${t('answer.options')}>${job.question.options.map(
      (option) => html`<button type="button" class="chip add" @click=${() => type(team, job, option)}>${said(option)}</button>`)}</div>` : nothing}
    <label class="label" for=${id}>${t('answer.label')}</label>
    <textarea id=${id} rows="2" dir="auto" .value=${live(answer.text)} aria-invalid=${Boolean(shown)} aria-describedby="${id}-count"
      @input=${(event) => type(team, job, event.target.value)} @keydown=${(event) => submitKeys(event, submit)}></textarea>
    ${shown ? html`<p class="field-error" role="alert">${boundsText(wrong, answer.text)}</p>` : nothing}
    <div class="ask-foot">${counter(answer.text, BOUNDS.text, `${id}-count`)}
      <button type="button" class="button primary" ?disabled=${Boolean(wrong) || sending} @click=${submit}>${t('answer.send')}</button></div>
  </div>`;
}

/** What the typed JSON means: `{ value }` or `{ wrong }`. */
export function readJson(text) {
  if (!text.trim()) return { wrong: '' };
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { wrong: t('answer.badJson', { why: error.message }) };
  }
  const size = utf8(typeof value === 'string' ? value : JSON.stringify(value));
  if (size > RESPONSE_BYTES) return { wrong: t('answer.longJson', { n: size, max: RESPONSE_BYTES }) };
  if (/\\u[dD][89a-fA-F]/.test(text) && /\p{Surrogate}/u.test(JSON.stringify(value).replace(/\\u(d[89a-f]..)/gi, (_, code) => String.fromCharCode(parseInt(code, 16))))) {
    return { wrong: t('bounds.surrogate') };
  }
  return { value };
}

/** The call that an interrupt wants to be approved, if it is one. */
const callOf = ({ value }) => (value && typeof value === 'object' && value.kind === 'approval' && typeof value.tool === 'string' ? value : null);

/** One interrupt as it was raised: for an approval the exact call. Where several are open, with the id that names it in the answer. */
function interrupt(one, several) {
  const call = callOf(one);
  return html`<div class="interrupt">
    ${call ? html`<p class="ask-text">${t('answer.approval')} <code>${said(call.tool)}</code></p>` : nothing}
    <pre tabindex="0" aria-label=${t('answer.exact')}>${said(JSON.stringify(call ? call.arguments : one.value, null, 2))}</pre>
    ${one.cut ? html`<p class="note">${t('answer.cut', { n: one.cut.bytes })}</p>` : nothing}
    ${several ? html`<p class="faint">${t('answer.interruptId')} <code>${said(one.id)}</code></p>` : nothing}
  </div>`;
}

function interrupts(team, job) {
  const answer = answerOf(team, job);
  const read = readJson(answer.text);
  const sending = busy(`answer/${job.id}`);
  const submit = () => {
    const now = readJson(answerOf(team, job).text);
    if ('value' in now && !sending) sendAnswer(team, job, now.value);
  };
  const id = `answer-${job.id}`;
  const several = job.interrupts.length > 1;
  return html`<div class="ask" role="group" aria-label=${t('answer.interrupt', { name: plain(job.member ?? '') })}>
    <div class="ask-head"><p class="ask-title">${t('answer.stops', { name: plain(job.member ?? '') })}</p>
      <a href=${talk(job.thread, team)}>${t('answer.inspect')}</a></div>
    ${job.interrupts.map((one) => interrupt(one, several))}
    <label class="label" for=${id}>${t('answer.json')}</label>
    <p class="faint hint" id="${id}-hint">${several ? t('answer.several') : nothing}
      ${job.interrupts.some(callOf) ? html`${t('answer.approvalForm')} <code>{"approved": true}</code> ${t('answer.or')} <code>{"approved": false, "note": "…"}</code>` : nothing}</p>
    <textarea id=${id} class="code" rows="2" spellcheck="false" autocomplete="off" .value=${live(answer.text)} aria-invalid=${Boolean(read.wrong)} aria-describedby="${id}-hint"
      @input=${(event) => type(team, job, event.target.value)} @keydown=${(event) => submitKeys(event, submit)}></textarea>
    ${read.wrong ? html`<p class="field-error" role="alert">${said(read.wrong)}</p>` : nothing}
    <div class="ask-foot"><span class="grow"></span>
      <button type="button" class="button primary" ?disabled=${!('value' in read) || sending} @click=${submit}>${t('answer.sendJson')}</button></div>
  </div>`;
}

/** The form for what this job asks now. */
export function answerForm(team, job) {
  if (job.status !== 'waiting_input') return nothing;
  if (job.question) return question(team, job);
  return job.interrupts.length ? interrupts(team, job) : nothing;
}
