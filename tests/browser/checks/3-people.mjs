// What only a person can decide: an outcome that nobody knows, several open
// interrupts at once, answers that are not lost, and all of it in one place.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { picture } from '../harness.mjs';

/**
 * A team of an earlier plugin with a job whose run this host does not know:
 * once it is looked for, nobody knows what became of it. Gives its id.
 */
async function unclear(visitor) {
  // A host remembers the keys of runs: each has its own.
  const id = `unclear-${randomBytes(6).toString('hex')}`;
  const members = [['m1', 'Ada', 'planner'], ['m2', 'Bo', 'researcher']].map(([member, name, agent]) => ({ id: `${id}-${member}`, name, agent, thread_id: `${id}-${member}-thread` }));
  const job = {
    id: `${id}-job`, root: `${id}-job`, member_id: members[0].id, thread_id: members[0].thread_id, source: null, kind: 'request', status: 'running', run_id: `${id}-run`,
    text: 'Please publish the announcement.', input: { messages: [{ id: `${id}-message`, content: 'Please publish the announcement.' }] },
  };
  const made = await visitor.action('import_team', { team: { id, name: 'Launch review', goal: 'Announce it.', ready: true, members, messages: [], jobs: [job] } });
  assert.equal(made.outcome, 'imported', JSON.stringify(made));
  await visitor.action('connect', { team_id: id });
  await visitor.until(async () => (await visitor.action('get', { team_id: id })).jobs[0].status === 'unknown', 'its outcome is unknown');
  return id;
}

export const checks = {
  async 'an outcome that nobody knows is settled by a person: as failed, or tried again'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const [one, two] = [await unclear(visitor), await unclear(visitor)];
    await visitor.open(`#/team/${one}`);
    const form = page.locator('.job .ask');
    await form.getByText('The outcome of this run is unknown.').waitFor();
    await page.locator('.member', { hasText: 'Ada' }).getByText('Unclear').waitFor();
    assert.ok(await form.getByRole('link', { name: 'Conversation' }).isVisible(), 'the conversation can be looked at first');
    await visitor.accessible('a job to be settled');
    await picture(page, 'settle');
    await form.getByRole('button', { name: 'End as failed' }).click();
    await page.locator('.job[data-status="failed"] .failure', { hasText: 'Outcome unknown' }).waitFor();
    assert.equal(await page.locator('.job .ask').count(), 0);
    // The other one stands among what waits for a person, and is tried again there.
    await visitor.open('#/now');
    const todo = page.locator('.todo', { hasText: 'Settle an unclear job' });
    await todo.getByRole('button', { name: 'Try again' }).click();
    await todo.waitFor({ state: 'detached' });
    const done = await visitor.until(async () => {
      const [job] = (await visitor.action('get', { team_id: two, details: true })).jobs;
      return job.status === 'completed' && job;
    }, 'it is done after all');
    assert.equal(done.result.text, 'Done: it is finished.');
  },

  async 'several interrupts of one job are decided together, each by its id'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    const team = await visitor.team('Both');
    const job = await visitor.ask(team, 'Cy', 'Please write both files.');
    const [first, second] = job.interrupts.map((one) => one.id);
    assert.ok(first && second && first !== second);
    await visitor.open(`#/team/${team.id}`);
    const form = page.locator('.ask');
    await form.getByText('Several are open').waitFor();
    assert.deepEqual((await form.locator('pre').allInnerTexts()).map((text) => JSON.parse(text).path), ['notes/first.md', 'notes/second.md']);
    for (const id of [first, second]) assert.equal(await form.locator('.interrupt', { hasText: id }).count(), 1);
    await visitor.accessible('two interrupts');
    const area = form.locator('textarea');
    const send = form.getByRole('button', { name: 'Send this decision' });
    // One value for both says nothing about either: refused by the server, kept here.
    await area.fill('{"approved": true}');
    await send.click();
    await page.locator('.job .alert.bad').waitFor();
    assert.equal(await area.inputValue(), '{"approved": true}');
    const map = JSON.stringify({ [first]: { approved: true }, [second]: { approved: false, note: 'Not this one' } });
    await area.fill(map);
    await area.press('Control+Enter');
    await page.getByText('Both are decided.').waitFor();
    // Each call got its own decision.
    await visitor.open(`#/conversation/${team.members.Cy.thread}`);
    await page.locator('.message.tool').nth(1).waitFor();
    const results = await page.locator('.message.tool summary').allTextContents();
    assert.match(results[0], /written|bytes|first/i);
    assert.match(results[1], /not_approved|not approved|Not this one/i);
  },

  async 'answers that were not sent survive updates, other teams, a reload and a restart'({ come, server }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    const team = await visitor.team('Answers');
    await visitor.team('Elsewhere');
    await visitor.ask(team, 'Bo', 'Write the announcement, but ask me first.');
    await visitor.ask(team, 'Cy', 'Please write the file.');
    await visitor.open(`#/team/${team.id}`);
    const question = page.locator('.ask', { hasText: 'Which tone' }).locator('textarea');
    const decision = page.locator('.ask', { hasText: 'write_file' }).locator('textarea');
    await question.fill('Half an answer, 半个回答');
    await decision.fill('{"approved": fal');
    const kept = async (after) => {
      assert.equal(await question.inputValue(), 'Half an answer, 半个回答', after);
      assert.equal(await decision.inputValue(), '{"approved": fal', after);
    };
    await question.evaluate((area) => { area.focus(); area.setSelectionRange(4, 4); });
    await visitor.ask(team, 'Ada', 'Something else happens');
    await page.locator('.job', { hasText: 'Something else happens' }).getByText('Done: it is finished.').waitFor();
    await kept('an update');
    assert.deepEqual(await question.evaluate((area) => [document.activeElement === area, area.selectionStart]), [true, 4], 'caret and focus');
    await page.locator('.team-link', { hasText: 'Elsewhere' }).click();
    await page.getByRole('heading', { name: 'Elsewhere' }).waitFor();
    await page.locator('.team-link', { hasText: 'Answers' }).click();
    await page.getByRole('heading', { name: 'Answers' }).waitFor();
    await question.waitFor();
    await kept('another team');
    // The same, in the one place for all teams.
    await page.locator('.nav-link', { hasText: 'For you' }).click();
    await page.locator('.todo').nth(1).waitFor();
    await kept('For you');
    await page.reload();
    await question.waitFor();
    await kept('a reload');
    await server.stop('SIGKILL');
    await page.getByText('The connection is lost.').waitFor();
    await page.locator('.todo', { hasText: 'Which tone' }).getByRole('button', { name: 'Answer', exact: true }).click();
    await page.locator('.todo .alert.bad', { hasText: 'cannot be reached' }).waitFor();
    await kept('a failed send');
    await server.start();
    await page.locator('.live.stream').waitFor();
    await kept('a restart');
    await page.locator('.todo', { hasText: 'Which tone' }).getByRole('button', { name: 'Answer', exact: true }).click();
    await page.locator('.todo', { hasText: 'Which tone' }).waitFor({ state: 'detached' });
    assert.equal(await decision.inputValue(), '{"approved": fal', 'the other one is still unsent');
    await visitor.until(async () => (await visitor.action('get', { team_id: team.id })).jobs.every((job) => job.member !== 'Bo' || job.status === 'completed'), 'Bo has the answer');
    await decision.fill('{"approved": false}');
    await decision.press('Control+Enter');
    await page.getByText('Nothing needs you').waitFor();
  },

  async 'only teams with something to do are read, and the counts follow'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const [asking, quiet] = [await visitor.team('Asking'), await visitor.team('Quiet')];
    await visitor.ask(asking, 'Bo', 'Write the announcement, but ask me first.');
    await visitor.ask(quiet, 'Ada', 'Work on this.');
    await visitor.ask(quiet, 'Bo', 'Please work slowly.', ['running']);
    await page.goto('about:blank');
    const read = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/actions/get')) read.push(request.postDataJSON().team_id);
    });
    await visitor.open('#/now');
    await page.locator('.todo', { hasText: 'Which tone' }).waitFor();
    assert.deepEqual([...new Set(read)], [asking.id], 'not the team that works by itself');
    assert.equal(await page.locator('.nav-link .count').innerText(), '1');
    assert.match(await page.title(), /^\(1\) /);
    assert.equal(await page.locator('.team-link', { hasText: 'Asking' }).locator('.count.ask').innerText(), '1');
    assert.equal(await page.locator('.plain-list li').count(), 1, 'what waits for a person is not at work');
    await page.locator('.plain-list li', { hasText: 'Quiet' }).getByText('1 job not finished').waitFor();
    await page.locator('.ask textarea').fill('Friendly');
    await page.locator('.ask textarea').press('Control+Enter');
    await page.getByText('Nothing needs you').waitFor();
    await visitor.until(async () => (await page.locator('.nav-link .count').count()) === 0 && !(await page.title()).startsWith('('), 'the counts are gone');
    // A question in a team that is not open is counted at once.
    await visitor.open(`#/team/${quiet.id}`);
    await page.locator('.chain').first().waitFor();
    read.length = 0;
    await (await come()).ask(asking, 'Cy', 'Please write the file.');
    await page.locator('.team-link', { hasText: 'Asking' }).locator('.count.ask').waitFor();
    assert.deepEqual(read.filter((id) => id === asking.id), [], 'counted, not read');
  },
};
