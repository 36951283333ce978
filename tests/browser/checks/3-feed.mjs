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
