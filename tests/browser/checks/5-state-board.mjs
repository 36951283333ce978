// Public state, the board, search, deletion.

import assert from 'node:assert/strict';
import { picture } from '../harness.mjs';

export const checks = {
  async 'public state: live updates, attribution, archive, plain text; the draft stays'({ come, server }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('State');
    assert.ok(server.actions.includes('state'), 'the component offers its public state');
    await visitor.open(`#/team/${team.id}`);
    await page.locator('#composer-text').fill('kept while the state changes');
    await visitor.open(`#/team/${team.id}/state`);
    await page.getByText('No public state yet').waitFor();
    await visitor.ask(team, 'Ada', 'Please publish the plan.');
    const entry = page.locator('.entry');
    await entry.getByText('Cost review').waitFor();
    assert.match(await entry.innerText(), /Plan[\s\S]*revision 1[\s\S]*Bo gathers quotes\. <b onclick="window\.hacked=1">not bold<\/b>[\s\S]*Published by Ada/);
    await visitor.ask(team, 'Bo', 'Please revise the plan.');
    await entry.getByText('Cost review, revised').waitFor();
    assert.match(await entry.innerText(), /revision 2[\s\S]*Last edited by Bo[\s\S]*First by Ada/);
    await visitor.ask(team, 'Ada', 'Please archive the plan.');
    await page.getByText('Archived (1)').click();
    await page.locator('.entry.archived').getByText('Cost review, revised').waitFor();
    await page.reload();
    await page.locator('.entry.archived').waitFor();
    await page.locator('.entry.archived').getByRole('link', { name: 'Source conversation' }).click();
    await page.getByRole('heading', { name: 'Ada' }).waitFor();
    await visitor.open(`#/team/${team.id}`);
    assert.equal(await page.locator('#composer-text').inputValue(), 'kept while the state changes');
  },

  async 'a successor begins with the active public state; without the earlier team it can begin empty'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    const team = await visitor.team('Season', { lead: 'Bo' });
    await visitor.ask(team, 'Ada', 'Please publish the plan.');
    await visitor.ask(team, 'Bo', 'Please revise the plan.');
    const successor = async () => {
      await page.locator('.menu summary').click();
      await page.locator('.menu-list').getByRole('button', { name: 'Make a successor' }).click();
      await page.getByText('A successor of').waitFor();
    };
    await visitor.open(`#/team/${team.id}`);
    await successor();
    // It is to be looked at first, and stays through a reload.
    await page.reload();
    await page.getByText('A successor of').waitFor();
    assert.equal(await page.locator('#team-name').inputValue(), 'Season 2');
    assert.equal(await page.locator('.lead-choice input').nth(1).isChecked(), true);
    await visitor.accessible('a successor');
    await page.getByRole('button', { name: 'Make the team' }).click();
    await page.getByRole('heading', { name: 'Season 2' }).waitFor();
    await page.locator('.side').getByRole('link', { name: 'Season', exact: true }).waitFor();
    await page.locator('.tabs .state').click();
    const entry = page.locator('.entry', { hasText: 'Cost review, revised' });
    assert.match(await entry.innerText(), /revision 1[\s\S]*Include annual costs\.[\s\S]*Published by Bo[\s\S]*Carried over from Season/);
    // The author's conversation is the earlier team's.
    await entry.getByRole('link', { name: 'Source conversation' }).click();
    await page.locator('.crumbs a', { hasText: 'Season' }).waitFor();
    await page.getByRole('heading', { name: 'Bo' }).waitFor();
    // Once the earlier team is gone, its entries say so and stay.
    const second = (await visitor.action('list', {})).teams.find((row) => row.name === 'Season 2');
    await visitor.open(`#/team/${second.id}`);
    await successor();
    assert.equal((await visitor.action('delete', { team_id: team.id })).code, undefined);
    await visitor.action('delete', { team_id: second.id });
    await page.getByRole('button', { name: 'Make the team' }).click();
    await page.locator('.create .alert.bad', { hasText: 'successor_of' }).waitFor();
    await page.getByRole('button', { name: 'Begin without it' }).click();
    await page.getByRole('button', { name: 'Make the team' }).click();
    await page.getByRole('heading', { name: 'Season 3' }).waitFor();
    await page.locator('.tabs .state').click();
    await page.getByText('No public state yet').waitFor();
  },

  async 'the board: create, edit, block, assign, complete, reopen, delete, history, a stale edit'({ come, server }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Board');
    await visitor.open(`#/team/${team.id}/board`);
    if (!server.actions.includes('tasks')) {
      // The page says so and offers the rest.
      await page.getByText('The board cannot be shown').waitFor();
      return;
    }
    await page.getByText('No tasks yet').waitFor();
    const add = async (subject, more = async () => {}) => {
      await page.getByRole('button', { name: 'New task' }).click();
      await page.locator('#task-subject').fill(subject);
      await page.locator('#task-description').fill(`All about: ${subject}`);
      await more();
      await page.getByRole('button', { name: 'Add the task' }).click();
      await page.locator('.task-dialog .history li').waitFor();
      await page.keyboard.press('Escape');
      await page.locator('.task-dialog').waitFor({ state: 'detached' });
    };
    await add('Collect prices', () => page.locator('#task-scopes').fill('notes'));
    await add('Write the letter', () => page.locator('#task-scopes').fill('notes/letter'));
    await add('Decide', () => page.locator('.blocker-list label', { hasText: 'Collect prices' }).click());
    assert.equal(await page.locator('.column.ready .task').count(), 2);
    await page.locator('.column.blocked .task', { hasText: 'Waits for task-1' }).waitFor();
    // Assign, and see the overlap.
    await page.locator('.task', { hasText: 'Collect prices' }).click();
    await page.locator('.assign select').selectOption({ label: 'Bo' });
    await page.locator('.task-dialog .history li').nth(1).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.column.in_progress .task', { hasText: 'Bo' }).waitFor();
    await page.locator('.task', { hasText: 'Write the letter' }).getByText('Writes overlap with task-1').waitFor();
    await picture(page, 'board');
    // An edit that is overtaken keeps its text and says so.
    await page.locator('.task', { hasText: 'Write the letter' }).click();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.locator('#task-subject').fill('Write a friendly letter');
    await visitor.action('update_task', { team_id: team.id, task_id: 'task-2', expected_revision: 1, action: 'edit', description: 'Changed elsewhere' });
    await page.getByText('The task was changed while you edited it.').waitFor();
    assert.equal(await page.locator('#task-subject').inputValue(), 'Write a friendly letter');
    await page.reload();
    assert.equal(await page.locator('#task-subject').inputValue(), 'Write a friendly letter');
    await page.getByRole('button', { name: 'Go on from the new state' }).click();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('#task-title', { hasText: 'Write a friendly letter' }).waitFor();
    await page.locator('.task-dialog').getByRole('button', { name: 'Delete' }).click();
    await page.locator('.task-dialog .facts', { hasText: 'deleted' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.task', { hasText: 'friendly letter' }).waitFor({ state: 'detached' });
    // Complete frees what waited; what others wait for cannot be deleted.
    await page.locator('.task', { hasText: 'Collect prices' }).click();
    await page.locator('.task-dialog').getByRole('button', { name: 'Complete' }).click();
    await page.getByRole('button', { name: 'Reopen' }).waitFor();
    visitor.expectFailures = true;
    await page.locator('.task-dialog').getByRole('button', { name: 'Delete' }).click();
    await page.locator('.task-dialog .alert.bad').waitFor();
    await page.locator('.task-dialog .history').waitFor();
    await visitor.accessible('a task');
    await page.keyboard.press('Escape');
    await page.locator('.column.ready .task', { hasText: 'Decide' }).waitFor();
    await page.locator('.task', { hasText: 'Collect prices' }).click();
    await page.getByRole('button', { name: 'Reopen' }).click();
    await page.keyboard.press('Escape');
    await page.locator('.column.blocked .task', { hasText: 'Decide' }).waitFor();
  },

  async 'an imported history that breaks off stands above its tasks until it is accepted'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Imported');
    const record = (id, revision, more = {}) => JSON.stringify({
      type: 'team/task', seq: 1, time: 1_767_225_600_000,
      data: { version: 2, teamId: 'root', task: { id, revision, subject: `Old ${id}`, description: 'd', status: 'pending', blockedBy: [], writeScopes: [], ...more } },
    });
    const lines = [JSON.stringify({ type: 'session', version: 0, id: 'root', createdAt: 1 }), record('task-1', 1), record('task-2', 1), record('task-2', 7), record('task-3', 1)].join('\n');
    const sent = await visitor.action('import_tasks', { team_id: team.id, lines });
    assert.ok(sent.failure ?? sent.import?.failure, JSON.stringify(sent));
    await visitor.open(`#/team/${team.id}/board`);
    const banner = page.locator('.board > .alert.bad');
    await banner.getByText('The imported history could not be read to its end.').waitFor();
    assert.match(await banner.innerText(), /line 4/);
    const above = await page.evaluate(() => document.querySelector('.board > .alert.bad').getBoundingClientRect().bottom <= document.querySelector('.columns').getBoundingClientRect().top);
    assert.ok(above, 'the failure stands above the tasks');
    assert.deepEqual(await page.locator('.task-subject').allInnerTexts(), ['Old task-1', 'Old task-2'], 'the last valid state');
    assert.ok(await page.getByRole('button', { name: 'New task' }).isDisabled());
    await page.locator('.task', { hasText: 'Old task-1' }).click();
    for (const name of ['Edit', 'Delete']) assert.ok(await page.locator('.task-dialog').getByRole('button', { name }).isDisabled(), name);
    await page.keyboard.press('Escape');
    await visitor.accessible('a failed import');
    await banner.getByRole('button', { name: 'Accept this state' }).click();
    await banner.waitFor({ state: 'detached' });
    await page.locator('.task', { hasText: 'Old task-1' }).click();
    await page.locator('.task-dialog').getByRole('button', { name: 'Complete' }).waitFor({ state: 'detached' });
    await page.locator('.assign select').selectOption({ label: 'Bo' });
    await page.locator('.task-dialog').getByRole('button', { name: 'Release' }).click();
    await page.locator('.task-dialog .history li').nth(2).waitFor();
    assert.equal((await visitor.action('tasks', { team_id: team.id, task_id: 'task-1' })).task.revision, 3);
  },

  async 'search pages through everything, keeps to its filters, and follows the team'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    const team = await visitor.team('Many');
    for (let i = 0; i < 27; i += 1) await visitor.action('send', { team_id: team.id, member_id: team.members[i % 2 ? 'Ada' : 'Bo'].id, request_id: `n${i}`, text: `Offer number ${i}` });
    await visitor.action('create_task', { team_id: team.id, subject: 'Compare every offer', description: 'd' });
    await visitor.until(async () => (await visitor.action('get', { team_id: team.id })).team.counts.unfinished === 0, 'all are done');
    await visitor.open(`#/team/${team.id}/search`);
    const settled = async () => {
      await visitor.painted();
      await page.locator('.search[aria-busy="false"]').waitFor();
    };
    await page.locator('#team-search').fill('OFFER');
    await settled();
    await page.getByText('21 finds, and more', { exact: true }).waitFor();
    await page.locator('.hit', { hasText: 'Compare every offer' }).waitFor();
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.getByText('28 finds', { exact: true }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Show more' }).count(), 0);
    await visitor.accessible('finds');
    // What happens in the team is found without asking again.
    await visitor.ask(team, 'Cy', 'One more offer');
    await page.getByText('29 finds', { exact: true }).waitFor();
    assert.match(await page.locator('.hit').first().innerText(), /Cy[\s\S]*One more offer/);
    await page.getByLabel('Member', { exact: true }).selectOption({ label: 'Cy' });
    await settled();
    await page.getByText('1 find', { exact: true }).waitFor();
    await page.getByLabel('Status').selectOption({ label: 'Failed' });
    await settled();
    await page.getByText('Nothing found').waitFor();
    // A refusal is shown and can be tried again; what was typed stays.
    await page.route('**/actions/results', (route) => route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"code":"team_busy","detail":"The team is busy; nothing happened."}' }));
    await page.getByLabel('Status').selectOption({ label: 'Any status' });
    await page.locator('.search .alert.bad').waitFor();
    await page.unroute('**/actions/results');
    await page.locator('.search .alert.bad').getByRole('button', { name: 'Try again' }).click();
    await page.getByText('1 find', { exact: true }).waitFor();
    assert.equal(await page.locator('#team-search').inputValue(), 'OFFER');
  },

  async 'search finds requests and results by exact words, also in Chinese, and leads there'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Search');
    await visitor.ask(team, 'Ada', '请整理数据保护条款 100% "quoted" snake_case');
    await visitor.ask(team, 'Bo', 'Please collect the facts.');
    await visitor.open(`#/team/${team.id}/search`);
    const box = page.locator('#team-search');
    const look = async (query) => {
      await box.fill(query);
      await visitor.painted();
      await page.locator('.search[aria-busy="false"]').waitFor();
    };
    for (const [query, hits] of [['数据保护', 1], ['100%', 1], ['"QUOTED"', 1], ['snake_case', 1], ['STORED', 1], ['%', 1], ['nothing like it', 0]]) {
      await look(query);
      await page.getByText(hits === 1 ? '1 find' : '0 finds', { exact: true }).waitFor();
      assert.equal(await page.locator('.hit').count(), hits, query);
    }
    await visitor.accessible('nothing found');
    await look('STORED');
    assert.equal(await page.locator('.hit mark').innerText(), 'stored');
    await page.locator('.hit a').click();
    await visitor.until(() => page.evaluate(() => document.activeElement?.classList.contains('job')), 'the job has the focus');
    assert.match(await page.evaluate(() => document.activeElement.innerText), /collect the facts/);
  },

  async 'deletion is refused while work continues, then removes the team here and in another tab'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    const team = await visitor.team('Delete me');
    await visitor.ask(team, 'Bo', 'Please work slowly.', ['running']);
    await visitor.open(`#/team/${team.id}`);
    await page.locator('#composer-text').fill('a draft that goes with it');
    const ask = async () => {
      await page.locator('.menu summary').click();
      await page.locator('.menu-list').getByRole('button', { name: 'Delete the team' }).click();
    };
    await ask();
    await page.getByText('1 job is not finished.').waitFor();
    await page.locator('#delete-confirm').click();
    await page.locator('#delete-dialog .alert.bad').waitFor();
    await page.keyboard.press('Escape');
    const [job] = (await visitor.action('get', { team_id: team.id })).jobs;
    await visitor.action('cancel', { team_id: team.id, job_id: job.id });
    await visitor.until(async () => (await visitor.action('get', { team_id: team.id })).team.counts.unfinished === 0, 'the job has ended');
    const other = await visitor.context.newPage();
    await other.goto(page.url());
    await other.locator('.composer').waitFor();
    await ask();
    await page.locator('#delete-confirm').click();
    await page.getByText('The team is deleted.').waitFor();
    assert.equal(await page.locator('.team-link', { hasText: 'Delete me' }).count(), 0);
    await other.getByText('There is no such team').waitFor();
    assert.equal(await page.evaluate((id) => Object.keys(localStorage).filter((key) => key.includes(id)).length, team.id), 0);
  },
};
