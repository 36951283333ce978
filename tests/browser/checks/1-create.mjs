// Putting a team together.

import assert from 'node:assert/strict';
import { picture } from '../harness.mjs';

const chars = (text, n) => [...text].length === n || assert.fail(`${[...text].length}`);

export const checks = {
  async 'catalogue: failure, retry, search, selection, and a team'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    await page.route('**/api/agents', (route) => route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"code":"agents_unavailable","detail":"Nothing happened; try again soon."}' }));
    await visitor.open('#/new');
    await page.getByText('The agents cannot be listed.').waitFor();
    assert.equal(await page.locator('.agents li').count(), 0, 'no invented agents');
    await page.unroute('**/api/agents');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.locator('.agents li').first().waitFor();
    assert.equal(await page.locator('.agents li').count(), 5);
    assert.equal(await page.evaluate(() => globalThis.isSecureContext && 'randomUUID' in crypto), true, 'loopback is a secure context');

    await page.getByLabel('Search agents').fill('FACTS like');
    await visitor.painted();
    assert.deepEqual(await page.locator('.agent-name').allInnerTexts(), ['Writer writer']);
    await page.getByRole('button', { name: 'Add Writer' }).click();
    await page.getByLabel('Search agents').fill('');
    await page.getByRole('button', { name: 'Add Planner' }).click();
    await page.getByRole('button', { name: 'Add again: Planner' }).click();
    await visitor.painted();
    assert.deepEqual(await page.locator('.roster input:not([type=checkbox])').evaluateAll((all) => all.map((one) => one.value)), ['Writer', 'Planner', 'Planner 2']);
    await page.getByLabel('Name', { exact: true }).fill('Launch review');
    await page.locator('#team-goal').fill('Find out whether we can launch.');
    await page.getByLabel('Search agents').fill('facts');
    await visitor.painted();
    await picture(page, 'create');
    await page.getByRole('button', { name: 'Make the team' }).click();
    await page.getByRole('heading', { name: 'Launch review' }).waitFor();
    assert.equal(await page.locator('.member').count(), 3);
    // The form is empty again.
    await visitor.open('#/new');
    assert.equal(await page.locator('#team-name').inputValue(), '');
  },

  async 'labels are unique and bounded, also after they were cut'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    await visitor.open('#/new');
    const add = page.locator('.agents li', { hasText: 'Its name is longer' }).getByRole('button');
    await add.click();
    await add.click();
    await visitor.painted();
    const names = await page.locator('.roster input:not([type=checkbox])').evaluateAll((all) => all.map((one) => one.value));
    assert.equal(new Set(names).size, 2);
    for (const name of names) assert.ok(new TextEncoder().encode(name).length <= 160 && [...name].length <= 80, name);
    // Two that differ only in how they are composed are one name.
    const inputs = page.locator('.roster input:not([type=checkbox])');
    await inputs.nth(0).fill('Zoe\u0301');
    await inputs.nth(1).fill('Zo\u00e9');
    await page.getByText('Another member has this name.').waitFor();
    await inputs.nth(1).fill('Zo\u200be');
    await page.getByText('There is an invisible or control character in this name.').waitFor();
    await page.evaluate(() => localStorage.clear());
  },

  async 'bounds in characters and bytes keep the text, and exact ones are taken'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    await visitor.open('#/new');
    await page.locator('.agents li').first().waitFor();
    const cases = [['a'.repeat(80), 'a'.repeat(81), 'characters'], ['é'.repeat(80), 'é'.repeat(81), 'characters'], ['队'.repeat(53), '队'.repeat(54), 'bytes'], ['😀'.repeat(40), '😀'.repeat(41), 'bytes']];
    for (const [good, bad, word] of cases) {
      await page.locator('#team-name').fill(bad);
      await page.locator('#name-error').filter({ hasText: word }).waitFor();
      assert.equal(await page.locator('#team-name').inputValue(), bad, 'nothing is cut off');
      await page.reload();
      assert.equal(await page.locator('#team-name').inputValue(), bad, 'the draft is kept');
      await page.locator('#team-name').fill(`  ${good}\ufeff`);
      await page.locator('#name-error').waitFor({ state: 'detached' });
    }
    await page.locator('#team-goal').fill('队'.repeat(1334));
    await page.locator('#goal-error').filter({ hasText: 'bytes' }).waitFor();
    const goal = '队'.repeat(1333);
    await page.locator('#team-goal').fill(goal);
    await page.locator('#goal-error').waitFor({ state: 'detached' });
    // The exact bounds are taken by the server, too.
    await page.getByRole('button', { name: 'Add Planner' }).click();
    await page.getByRole('button', { name: 'Add Researcher' }).click();
    await page.locator('.roster input:not([type=checkbox])').nth(0).fill('😀'.repeat(40));
    await page.getByRole('button', { name: 'Make the team' }).click();
    await page.locator('.team-head').waitFor();
    assert.equal(chars(await page.locator('.team-head h1').innerText(), 40), true);
    await visitor.fits('a team with the longest names');
  },

  async 'a refused creation keeps everything, and an empty form names what is missing'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    await visitor.open('#/new');
    await page.getByRole('button', { name: 'Make the team' }).click();
    await page.getByText('A team has 2 to 8 members.').waitFor();
    assert.equal(await page.getByText('Write something here.').count(), 2);
    await page.locator('#team-name').fill('Kept');
    await page.locator('#team-goal').fill('Kept, too');
    await page.getByRole('button', { name: 'Add Planner' }).click();
    await page.getByRole('button', { name: 'Add Writer' }).click();
    await page.route('**/actions/create', (route) => route.abort());
    await page.getByRole('button', { name: 'Make the team' }).click();
    await page.getByText('The server cannot be reached.').first().waitFor();
    await page.unroute('**/actions/create');
    await page.reload();
    assert.equal(await page.locator('#team-name').inputValue(), 'Kept');
    await page.getByRole('button', { name: 'Make the team' }).click();
    await page.getByRole('heading', { name: 'Kept' }).waitFor();
    const { teams } = await visitor.action('list', {});
    assert.equal(teams.filter((team) => team.name === 'Kept').length, 1);
  },
};
