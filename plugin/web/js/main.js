// The page's start: language, theme, route, then the data and its updates.

import { render } from '../vendor/lit-html.js';
import { onOtherTab } from './drafts.js';
import { chooseLanguage, t } from './i18n.js';
import { refreshSearch } from './find.js';
import { keepLive } from './live.js';
import { asks, loadAgents, paintWith, readNeeded, refreshAll, refreshParts, refreshTeam, signIn, state, update, viewOf } from './store.js';
import { applyTheme } from './theme.js';
import { plain } from './text.js';
import { resumeTask } from './views/board.js';
import { refreshConversation } from './views/conversation.js';
import { shell } from './views/shell.js';
import { openDialogs, TABS } from './views/team.js';

const root = document.getElementById('app');

/** `#/team/ID/board`, `#/conversation/ID/TEAM`, `#/new`, `#/now`. */
function parse(hash) {
  let parts;
  try {
    parts = hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent);
  } catch {
    parts = [];
  }
  const [name, id, tab] = parts;
  if (name === 'team' && id) return { name, team: id, tab: TABS.includes(tab) ? tab : 'activity' };
  if (name === 'conversation' && id) return { name, thread: id, of: tab };
  return { name: name === 'new' ? 'new' : 'now' };
}

function title() {
  const team = state.route.team && state.views.get(state.route.team)?.team;
  const waiting = state.phase === 'ready' ? asks() : 0;
  return `${waiting ? `(${waiting}) ` : ''}${team ? `${plain(team.name)} · ` : ''}${t('brand')}`;
}

function paint() {
  render(shell({ relanguage, again: begin }), root);
  openDialogs();
  const wanted = title();
  if (document.title !== wanted) document.title = wanted;
}

function relanguage(code) {
  chooseLanguage(code);
  update();
}

async function follow() {
  const before = state.route;
  state.route = parse(location.hash);
  state.drawer = false;
  update();
  const { team, name } = state.route;
  if (before.name !== name || before.team !== team || before.thread !== state.route.thread) {
    scrollTo(0, 0);
    document.getElementById('main')?.focus({ preventScroll: true });
  }
  if (state.phase !== 'ready') return;
  if (team) {
    const view = viewOf(team);
    if (!view.detailed) await refreshTeam(team, true);
    else await refreshParts(view);
    resumeTask(team);
  }
  if (name === 'new' || name === 'team') if (!state.agents && !state.agentsError) loadAgents();
  readNeeded();
  refreshConversation();
  if (team) refreshSearch(viewOf(team));
  // On a narrow screen the chosen tab may be outside.
  requestAnimationFrame(() => document.querySelector('.tabs [aria-current]')?.scrollIntoView({ inline: 'center', block: 'nearest' }));
}

async function begin() {
  if (!(await signIn())) return;
  await Promise.all([follow(), refreshAll()]);
}

chooseLanguage();
applyTheme();
paintWith(paint);
state.route = parse(location.hash);
paint();
addEventListener('hashchange', follow);
onOtherTab(() => update());
// Menus close when something else is pressed.
addEventListener('click', (event) => {
  for (const menu of document.querySelectorAll('details.menu[open]')) if (!menu.contains(event.target)) menu.open = false;
});
addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.isComposing) return;
  for (const menu of document.querySelectorAll('details.menu[open]')) {
    menu.open = false;
    menu.querySelector('summary').focus();
  }
  if (state.drawer) {
    state.drawer = false;
    update();
  }
});
await begin();
keepLive(async () => {
  const { team } = state.route;
  await Promise.all([refreshConversation(), team && refreshSearch(viewOf(team))]);
});
