// Putting a team together from the agents that exist.

import { html, live, nothing, repeat } from '../../vendor/lit-html.js';
import { busy, createError, createTeam, newTeamOf, setNewTeam } from '../commands.js';
import { t } from '../i18n.js';
import { loadAgents, state, update } from '../store.js';
import { BOUNDS, fault, fold, hiddenInName, plain, uniqueLabel } from '../text.js';
import { boundsText, counter } from './composer.js';
import { alertBox, avatar, button, href, icon, said, why } from './parts.js';

const MIN = 2;
const MAX = 8;
let query = '';
/** Faults are named once somebody has tried to go on, or a text is too long. */
let tried = false;

const change = (part) => {
  createError.current = null;
  setNewTeam({ ...structuredClone(newTeamOf()), ...part });
};

function add(agent) {
  const draft = structuredClone(newTeamOf());
  if (draft.members.length >= MAX) return;
  const label = uniqueLabel(agent.display_name || agent.name, draft.members.map((member) => member.name));
  change({ members: [...draft.members, { agent: agent.name, name: label }] });
}

function remove(at) {
  const draft = newTeamOf();
  const lead = draft.lead === at ? '' : draft.lead > at ? draft.lead - 1 : draft.lead;
  change({ members: draft.members.filter((_, i) => i !== at), lead });
}

function rename(at, name) {
  const members = structuredClone(newTeamOf().members);
  members[at].name = name;
  change({ members });
}

/** What is wrong with each field, in words; empty: nothing. */
function faults(draft) {
  const found = {};
  const text = (field, value, bound) => {
    const wrong = fault(value, bound);
    if (wrong) found[field] = boundsText(wrong, value, bound);
    else if (field !== 'goal' && hiddenInName(value)) found[field] = t('bounds.hidden');
  };
  text('name', draft.name, BOUNDS.teamName);
  text('goal', draft.goal, BOUNDS.goal);
  const seen = new Map();
  draft.members.forEach((member, i) => {
    text(`member${i}`, member.name, BOUNDS.memberName);
    const same = member.name.trim().normalize('NFC');
    if (same && seen.has(same)) found[`member${i}`] = t('create.duplicate');
    seen.set(same, i);
  });
  if (draft.members.length < MIN || draft.members.length > MAX) found.members = t('create.count', { min: MIN, max: MAX });
  return found;
}

const tooLong = (value, bound) => ['chars', 'bytes', 'nul', 'surrogate'].includes(fault(value, bound));
const showFault = (found, field, always) => (found[field] && (tried || always) ? html`<p class="field-error" id="${field}-error" role="alert">${found[field]}</p>` : nothing);

function catalogue(draft) {
  if (state.agentsError) {
    return alertBox('bad', html`<strong>${t('create.agentsFailed')}</strong> ${why(state.agentsError)}`, button(t('retry'), loadAgents, { disabled: state.agentsLoading }));
  }
  if (!state.agents) return html`<p class="faint" role="status">${t('loading')}</p>`;
  if (!state.agents.length) return alertBox('ask', t('create.noAgents'));
  const words = fold(query).split(/\s+/u).filter(Boolean);
  const found = state.agents.filter((agent) => {
    const text = fold(`${agent.name} ${agent.display_name} ${agent.description}`);
    return words.every((word) => text.includes(word));
  });
  const full = draft.members.length >= MAX;
  return html`<ul class="agents" aria-label=${t('create.agents')}>
    ${repeat(found, (agent) => agent.name, (agent) => {
      const times = draft.members.filter((member) => member.agent === agent.name).length;
      return html`<li class=${times ? 'chosen' : ''}>${avatar(agent.display_name || agent.name, agent.name)}
        <div class="grow"><div class="agent-name">${said(agent.display_name || agent.name)}${agent.display_name && agent.display_name !== agent.name ? html` <span class="faint">${said(agent.name)}</span>` : nothing}</div>
          <div class="faint">${said(agent.description)}</div></div>
        ${times ? html`<span class="faint">${icon('check')}${times > 1 ? ` ×${times}` : nothing}</span>` : nothing}
        <button type="button" class="button small" ?disabled=${full} aria-label=${t(times ? 'create.addAgentAgain' : 'create.addAgent', { name: plain(agent.display_name || agent.name) })}
          @click=${() => add(agent)}>${t(times ? 'create.addAgain' : 'create.add')}</button></li>`;
    })}
  </ul>${found.length ? nothing : html`<p class="faint" role="status">${t('create.noMatch')}</p>`}`;
}

function roster(draft, found) {
  if (!draft.members.length) return html`<p class="faint">${t('create.pick', { min: MIN, max: MAX })}</p>`;
  const known = (name) => !state.agents || state.agents.some((agent) => agent.name === name);
  return html`<ol class="roster" aria-label=${t('create.roster')}>${draft.members.map((member, i) => html`<li>
      ${avatar(member.name, member.agent)}
      <div class="grow"><label class="off-screen" for="member-${i}">${t('create.label', { agent: plain(member.agent) })}</label>
        <input id="member-${i}" dir="auto" autocomplete="off" .value=${live(member.name)} aria-invalid=${Boolean(found[`member${i}`])}
          @input=${(event) => rename(i, event.target.value)}>
        <span class="faint">${said(member.agent)}${known(member.agent) ? nothing : html` · <span class="bad-text">${t('create.agentGone')}</span>`}</span>
        ${showFault(found, `member${i}`, true)}</div>
      <label class="lead-choice" title=${t('create.leadTitle')}><input type="checkbox" .checked=${live(draft.lead === i)}
        @change=${(event) => change({ lead: event.target.checked ? i : '' })}>${t('create.lead')}</label>
      <button type="button" class="sign-button" aria-label=${t('create.remove', { name: plain(member.name) })} @click=${() => remove(i)}>${icon('close')}</button>
    </li>`)}</ol>`;
}

async function submit(event) {
  event.preventDefault();
  tried = true;
  const found = faults(newTeamOf());
  update();
  if (Object.keys(found).length) {
    requestAnimationFrame(() => setTimeout(() => document.querySelector('[aria-invalid="true"], #agent-search')?.focus(), 0));
    return;
  }
  const id = await createTeam();
  if (!id) return;
  tried = false;
  query = '';
  location.hash = href('team', id);
}

export function create() {
  const draft = newTeamOf();
  const found = faults(draft);
  const error = createError.current;
  return html`<div class="page narrow"><form class="create" novalidate @submit=${submit}>
    <h1>${t('create.title')}</h1><p class="lede">${t('create.lede')}</p>
    <div class="field"><div class="field-head"><label for="team-name">${t('create.name')}</label>${counter(draft.name, BOUNDS.teamName, 'name-count')}</div>
      <input id="team-name" dir="auto" autocomplete="off" .value=${live(draft.name)} aria-invalid=${Boolean(found.name && (tried || tooLong(draft.name, BOUNDS.teamName)))}
        aria-describedby="name-count" placeholder=${t('create.namePlaceholder')} @input=${(event) => change({ name: event.target.value })}>
      ${showFault(found, 'name', Boolean(draft.name.trim()))}</div>
    <div class="field"><div class="field-head"><label for="team-goal">${t('create.goal')}</label>${counter(draft.goal, BOUNDS.goal, 'goal-count')}</div>
      <textarea id="team-goal" rows="3" dir="auto" .value=${live(draft.goal)} aria-invalid=${Boolean(found.goal && (tried || tooLong(draft.goal, BOUNDS.goal)))}
        aria-describedby="goal-count" placeholder=${t('create.goalPlaceholder')} @input=${(event) => change({ goal: event.target.value })}></textarea>
      ${showFault(found, 'goal', Boolean(draft.goal.trim()))}</div>
    <fieldset class="field"><legend>${t('create.members')} <span class="faint">${draft.members.length} / ${MAX}</span></legend>
      ${roster(draft, found)}${showFault(found, 'members')}
      <div class="search-field">${icon('search')}<input id="agent-search" type="search" aria-label=${t('create.search')} placeholder=${t('create.search')}
        .value=${live(query)} @input=${(event) => { query = event.target.value; update(); }} @keydown=${(event) => { if (event.key === 'Enter' && !event.isComposing) event.preventDefault(); }}></div>
      ${catalogue(draft)}</fieldset>
    ${draft.earlier ? alertBox('info', html`${t('successor.of')} <a href=${href('team', draft.earlier.id)}>${said(draft.earlier.name)}</a>${t('sentence.end')} ${t('successor.carries')}`,
      button(t('successor.empty'), () => change({ earlier: null }), { kind: 'small' })) : nothing}
    ${error ? alertBox('bad', html`${why(error)}${error.field ? html` <code>${error.field}</code>` : nothing}`) : nothing}
    <div class="form-foot"><span class="faint">${t('create.fixed')}</span>
      <button class="button primary" id="create-team" ?disabled=${busy('create')}>${busy('create') ? t('create.making') : t('create.make')}</button></div>
  </form></div>`;
}
