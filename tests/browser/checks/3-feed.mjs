// Requests, results, handoffs, questions, decisions, cancel.

import assert from 'node:assert/strict';
import { picture } from '../harness.mjs';

export const checks = {
  async 'a request is paired with its result, its handoff and the return'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Pairs');
    await visitor.open(`#/team/${team.id}`);
    await page.locator('.member-button', { hasText: 'Ada' }).click();
    await page.locator('#composer-text').fill('Please hand this over.');
    await page.locator('#composer-send').click();
    // Everything arrives without a reload.
    await page.getByText('The facts from Bo are here; the work is complete.').waitFor();
    assert.equal(await page.locator('.chain').count(), 1);
    const root = page.locator('.job.root');
    assert.match(await root.locator('.job-head').first().innerText(), /You[\s\S]*Ada[\s\S]*Done/);
    await root.getByText('I have asked Bo for the facts.').waitFor();
    const steps = page.locator('.steps .job');
    assert.equal(await steps.count(), 2);
    assert.match(await steps.nth(0).locator('.job-head').first().innerText(), /Ada[\s\S]*Bo/);
    assert.match(await steps.nth(1).locator('.job-head').first().innerText(), /Result returned to Ada/);
    assert.equal(await steps.nth(0).locator('.prose strong').innerText(), 'stored', 'Markdown is shown');
    // Details stay open over a reload and lead to the conversation.
    await root.locator('.details summary').click();
    await root.getByText('Request key').waitFor();
    await page.reload();
    await page.locator('.job.root').getByText('Request key').waitFor();
    await page.locator('.job.root').getByRole('link', { name: 'Conversation' }).first().click();
    await page.getByRole('heading', { name: 'Ada' }).waitFor();
    await page.locator('.message.assistant', { hasText: 'I have asked Bo' }).first().waitFor();
    await visitor.accessible('a conversation');
    await page.locator('.crumbs a').click();
    await page.locator('.chain').waitFor();
  },

  async 'a clarification is answered with text, also by keyboard; bounds keep the draft'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Questions');
    const job = await visitor.ask(team, 'Bo', 'Write the announcement, but ask me first.');
    assert.equal(job.status, 'waiting_input');
    await visitor.open('#/now');
    await page.locator('.todo', { hasText: 'Which tone do you want?' }).first().waitFor();
    await visitor.open(`#/team/${team.id}`);
    const form = page.locator('.ask');
    await form.getByText('Which tone do you want?').waitFor();
    await picture(page, 'question');
    for (const [bad, good] of [['é'.repeat(4001), 'é'.repeat(4000)], ['队'.repeat(2667), '队'.repeat(2666)]]) {
      await form.locator('textarea').fill(bad);
      await form.locator('.field-error').waitFor();
      assert.equal(await form.getByRole('button', { name: 'Answer', exact: true }).isDisabled(), true);
      await page.reload();
      assert.equal(await form.locator('textarea').inputValue(), bad);
      await form.locator('textarea').fill(good);
      await form.locator('.field-error').waitFor({ state: 'detached' });
    }
    await form.getByRole('button', { name: 'Friendly' }).click();
    await visitor.until(async () => (await form.locator('textarea').inputValue()) === 'Friendly', 'an option is proposed and not sent');
    await form.locator('textarea').press('Control+Enter');
    await page.getByText('Done: it is finished.').waitFor();
    assert.equal(await page.locator('.ask').count(), 0);
  },

  async 'an interrupt shows the exact call and takes explicit JSON only'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Decisions');
    await visitor.ask(team, 'Cy', 'Please write the file.');
    await visitor.open(`#/team/${team.id}`);
    const form = page.locator('.ask');
    await form.getByText('write_file').waitFor();
    await picture(page, 'decision');
    assert.deepEqual(JSON.parse(await form.locator('pre').innerText()), { path: 'notes/plan.md', text: 'The plan' });
    assert.equal(await form.locator('textarea').inputValue(), '', 'nothing is proposed');
    const send = form.getByRole('button', { name: 'Send this decision' });
    assert.equal(await send.isDisabled(), true);
    await form.locator('textarea').fill('{"approved": true');
    await form.locator('.field-error').waitFor();
    assert.equal(await send.isDisabled(), true);
    await page.reload();
    assert.equal(await form.locator('textarea').inputValue(), '{"approved": true');
    await form.locator('textarea').fill('{"approved": true}');
    await send.click();
    await page.getByText('Written after a decision').waitFor();
  },

  async 'a long result is folded, opened for good, and copied whole'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    await visitor.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const team = await visitor.team('Long');
    await visitor.ask(team, 'Ada', 'Please give a long report.');
    await visitor.open(`#/team/${team.id}`);
    const job = page.locator('.job', { hasText: 'Please give a long report.' });
    await job.locator('.result.folded').waitFor();
    assert.equal(await job.getByText('END', { exact: true }).count(), 0);
    await job.getByRole('button', { name: 'Show all of the result of Ada' }).press('Enter');
    await job.getByText('END', { exact: true }).waitFor();
    await visitor.ask(team, 'Bo', 'Something else');
    await page.locator('.chain').nth(1).waitFor();
    assert.equal(await job.getByText('END', { exact: true }).count(), 1, 'an update closes nothing');
    await page.reload();
    await job.getByText('END', { exact: true }).waitFor();
    await job.getByRole('button', { name: 'Copy the result of Ada' }).click();
    await page.getByText('Copied.').waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    const { jobs } = await visitor.action('get', { team_id: team.id, details: true });
    assert.equal(copied, jobs.find((one) => one.member === 'Ada').result.text);
    await job.getByRole('button', { name: 'Show less of the result of Ada' }).click();
    await job.locator('.result.folded').waitFor();
    // A link says where it leads and opens only when pressed, elsewhere.
    const link = job.locator('.prose a').first();
    assert.deepEqual(await link.evaluate((a) => [a.href, a.target, a.rel.includes('noopener'), a.rel.includes('noreferrer')]), ['https://example.com/a', '_blank', true, true]);
  },

  async 'a message in a member’s conversation: the draft is kept, it is said once and answered'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    const team = await visitor.team('Talk');
    await visitor.open(`#/team/${team.id}`);
    await page.getByRole('link', { name: 'Conversation of Bo' }).click();
    await page.getByRole('heading', { name: 'Bo' }).waitFor();
    await page.getByText('Nothing here yet').waitFor();
    const area = page.locator('#talk-text');
    await area.fill('A word beside the work');
    await page.reload();
    assert.equal(await area.inputValue(), 'A word beside the work');
    // The team's name leads back also after a reload.
    await page.locator('.crumbs a', { hasText: 'Talk' }).waitFor();
    await page.getByText('A message here is outside the team’s work').waitFor();
    let lost = 0;
    await page.route('**/messages', async (route) => {
      lost += 1;
      await route.fetch();
      if (lost === 1) await route.abort();
      else await route.continue();
    });
    await area.press('Control+Enter');
    await page.locator('.alert.bad', { hasText: 'cannot be reached' }).waitFor();
    assert.equal(await area.inputValue(), 'A word beside the work');
    await page.locator('.message.assistant', { hasText: 'Done: it is finished.' }).waitFor();
    await area.press('Control+Enter');
    await visitor.until(async () => (await area.inputValue()) === '', 'the draft is gone');
    assert.equal(await page.locator('.message.human').count(), 1, 'said once');
  },

  async 'members show what they do, and a press leads to it'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('States', { lead: 'Ada' });
    await visitor.open(`#/team/${team.id}`);
    const member = (name) => page.locator('.member', { has: page.getByText(name, { exact: true }) });
    for (const name of ['Ada', 'Bo', 'Cy']) await member(name).getByText('Idle').waitFor();
    assert.equal(await page.getByText('Lead of the board').count(), 1);
    await visitor.ask(team, 'Ada', 'Please work slowly.', ['running']);
    await visitor.ask(team, 'Bo', 'Write the announcement, but ask me first.');
    await member('Ada').getByText('Working').waitFor();
    await member('Bo').getByText('Waits for you').waitFor();
    await member('Cy').getByText('Idle').waitFor();
    // Who starts and who queues is said before anything is sent.
    for (const name of ['Ada', 'Cy']) await member(name).locator('.member-button').click();
    await visitor.painted();
    assert.match(await page.locator('#composer-wakes').innerText(), /Starts now: Cy\. Busy, queued: Ada\./);
    await page.getByRole('link', { name: 'Current job of Bo' }).click();
    await visitor.until(() => page.evaluate(() => document.activeElement?.classList.contains('job') && document.activeElement.innerText.includes('Which tone')), 'Bo’s job has the focus');
  },

  async 'an active job is cancelled; a failed one says why'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Ends');
    await visitor.ask(team, 'Ada', 'Please work slowly.', ['running']);
    await visitor.ask(team, 'Ada', 'And then this.', ['queued']);
    await visitor.open(`#/team/${team.id}`);
    await page.getByText('An earlier job of this conversation is not finished.').waitFor();
    const slow = page.locator('.job', { hasText: 'Please work slowly.' });
    await slow.locator('.details summary').click();
    await slow.getByRole('button', { name: 'Cancel' }).click();
    await slow.getByText('Cancelled', { exact: true }).first().waitFor();
    await page.locator('.job', { hasText: 'And then this.' }).getByText('Done: it is finished.').waitFor();
    await visitor.ask(team, 'Bo', 'Please fail now.');
    await page.locator('.failure', { hasText: '<b>now</b>' }).waitFor();
  },
};
