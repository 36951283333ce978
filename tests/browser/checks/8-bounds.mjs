// A team at its bounds: as many entries as chains of twelve give, each with a
// result of 6 KB, and 256 tasks. Measured
// in the page itself, with a wide margin: this guards against a page that
// stops, not against a busy machine.

import assert from 'node:assert/strict';

const inBatches = async (count, work) => {
  for (let i = 0; i < count; i += 10) await Promise.all(Array.from({ length: Math.min(10, count - i) }, (_, j) => work(i + j)));
};

export const checks = {
  async 'a full team opens with few reads, and typing stays smooth while it changes'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Full');
    const members = Object.values(team.members);
    await inBatches(8, (i) =>
      visitor.action('send', { team_id: team.id, member_id: team.members.Ada.id, request_id: `divide/${i}`, text: `Please divide, number ${i}.` }));
    await visitor.ask(team, 'Ada', 'Please publish the plan.');
    let tasks = 0;
    for (let i = 0; i < 256; i += 1) {
      const made = await visitor.action('create_task', { team_id: team.id, subject: `Task ${i}`, description: 'D'.repeat(400), write_scopes: [`dir${i}`] });
      if (made.task) tasks += 1;
      else break;
    }
    const { team: full } = await visitor.until(async () => {
      const read = await visitor.action('get', { team_id: team.id, limit: 1 });
      return read.team.counts.unfinished === 0 ? read : null;
    }, 'all are done');
    assert.deepEqual([full.counts.requests, full.counts.receipts], [97, 88]);
    // Of the page that opens, not of the one before it.
    await page.goto('about:blank');
    const calls = [];
    page.on('request', (request) => {
      if (request.url().includes('/actions/')) calls.push(request.url().split('/').pop());
    });
    await visitor.open(`#/team/${team.id}`);
    await page.locator('.job').nth(22).waitFor();
    const reads = calls.filter((call) => ['get', 'state', 'history', 'tasks'].includes(call));
    assert.deepEqual(reads.sort(), ['get', 'state'], 'the team and its public state, once each');
    const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
    const bytes = await page.evaluate(() => performance.getEntriesByType('resource').filter((one) => one.name.endsWith('/get')).reduce((sum, one) => sum + one.decodedBodySize, 0));
    // The successor is offered near the bound.
    await page.getByText('This team can take 3 more requests.').waitFor();
    // How long an update keeps the page from answering.
    const blocked = page.evaluate(() => new Promise((resolve) => {
      let worst = 0;
      let last = performance.now();
      const until = last + 3000;
      const look = () => {
        const now = performance.now();
        worst = Math.max(worst, now - last);
        last = now;
        if (now < until) setTimeout(look, 0);
        else resolve(worst);
      };
      look();
    }));
    await page.locator('#composer-text').focus();
    const streaming = inBatches(3, (i) => visitor.action('send', { team_id: team.id, member_id: members[i % 3].id, request_id: `late/${i}`, text: `Please give a long report, late ${i}.` }));
    await page.keyboard.type('typed while it streams');
    await streaming;
    assert.equal(await page.locator('#composer-text').inputValue(), 'typed while it streams');
    const worst = await blocked;
    console.log(`      first paint ${Math.round(paint)} ms, ${Math.round(bytes / 1024)} KiB of entries, longest pause during updates ${Math.round(worst)} ms, ${tasks} tasks`);
    assert.ok(worst < 1500, `the page stood still for ${Math.round(worst)} ms`);
    await visitor.until(async () => {
      await page.evaluate(() => document.querySelector('.earlier')?.click());
      return (await page.locator('.job').count()) === 188;
    }, 'all entries are shown');
    if (tasks) {
      await visitor.open(`#/team/${team.id}/board`);
      await page.locator('.column.ready .task').nth(tasks - 1).waitFor();
      assert.equal(tasks, 256);
    }
    // A successor: same roster and goal, another name.
    await page.getByRole('button', { name: 'Make a successor' }).last().click();
    await page.getByRole('heading', { name: 'New team' }).waitFor();
    assert.equal(await page.locator('#team-name').inputValue(), 'Full 2');
    assert.equal(await page.locator('#team-goal').inputValue(), team.goal);
    assert.equal(await page.locator('.roster li').count(), 3);
    await page.getByRole('button', { name: 'Make the team' }).click();
    await page.getByRole('heading', { name: 'Full 2' }).waitFor();
    // Its public state came with it; nothing waits to be sent.
    assert.equal(await page.locator('#composer-text').inputValue(), '');
    await page.locator('.tabs .state', { hasText: '1' }).click();
    await page.locator('.entry', { hasText: 'Cost review' }).getByRole('link', { name: 'Full', exact: true }).waitFor();
  },
};
