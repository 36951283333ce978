// Nothing that was typed is lost, and nothing happens twice.

import assert from 'node:assert/strict';

export const checks = {
  async 'drafts and recipients stay through another team, a reload, a lost connection and a restart'({ come, server }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    const x = await visitor.team('Draft X');
    const y = await visitor.team('Draft Y');
    await visitor.open(`#/team/${x.id}`);
    for (const name of ['Ada', 'Cy']) await page.locator('.member-button', { hasText: name }).click();
    await page.locator('#composer-text').fill('Half a sentence, 半句');
    await page.locator('.team-link', { hasText: 'Draft Y' }).click();
    await page.getByRole('heading', { name: 'Draft Y' }).waitFor();
    await visitor.painted();
    assert.equal(await page.locator('#composer-text').inputValue(), '');
    assert.equal(await page.locator('.composer .chip').count(), 0);
    await page.reload();
    await page.locator('.live.stream').waitFor();
    const lost = page.getByText('The connection is lost.');
    const back = async () => {
      await server.start();
      await lost.waitFor({ state: 'detached' });
      await page.locator('.live.stream').waitFor();
    };
    await server.stop('SIGKILL');
    await lost.waitFor();
    await back();
    await page.locator('.team-link', { hasText: 'Draft X' }).click();
    // The other team has a composer too: this one is there with its heading.
    await page.getByRole('heading', { name: 'Draft X' }).waitFor();
    await visitor.painted();
    assert.equal(await page.locator('#composer-text').inputValue(), 'Half a sentence, 半句');
    // Sending while the server is away fails and loses nothing.
    await server.stop('SIGKILL');
    await lost.waitFor();
    await page.locator('#composer-send').click();
    await page.getByText('Not everything was sent.').waitFor();
    assert.equal(await page.locator('#composer-text').inputValue(), 'Half a sentence, 半句');
    await back();
    assert.deepEqual(await page.locator('.composer .chip > bdi').allInnerTexts(), ['Ada', 'Cy']);
    await page.locator('#composer-send').click();
    await page.locator('.chain').nth(1).waitFor();
    assert.equal((await visitor.action('get', { team_id: x.id })).jobs.length, 2, 'each once');
    assert.equal((await visitor.action('get', { team_id: y.id })).jobs.length, 0);
  },

  async 'what was opened stays open through updates, other teams, a reload and a restart'({ come, server }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    const team = await visitor.team('Opened');
    await visitor.team('Other');
    await visitor.ask(team, 'Ada', 'Please hand this over.');
    await visitor.until(async () => (await visitor.action('get', { team_id: team.id })).team.counts.unfinished === 0, 'all are done');
    await visitor.open(`#/team/${team.id}`);
    const details = page.locator('.job.root', { hasText: 'Please hand this over.' }).locator('.details').first();
    const step = page.locator('.steps .job').nth(0).locator('.details');
    await details.locator('summary').click();
    await step.locator('summary').press('Enter');
    const open = async (after) => {
      await details.getByText('Request key').waitFor();
      await step.getByText('Request key').waitFor();
      assert.equal(await page.locator('.details[open]').count(), 2, after);
    };
    // At once, before anything else could happen.
    await page.reload();
    await open('a reload');
    await visitor.ask(team, 'Bo', 'Something else');
    await page.locator('.chain').nth(1).waitFor();
    await open('an update');
    await page.locator('.team-link', { hasText: 'Other' }).click();
    await page.getByRole('heading', { name: 'Other' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'Opened' }).waitFor();
    await open('another team');
    await server.stop('SIGKILL');
    await page.getByText('The connection is lost.').waitFor();
    await server.start();
    await page.locator('.live.stream').waitFor();
    await open('a restart');
    await step.locator('summary').click();
    await page.reload();
    await details.getByText('Request key').waitFor();
    assert.equal(await page.locator('.details[open]').count(), 1, 'what was closed stays closed');
    // A task that is being written stays with its dialog.
    await visitor.open(`#/team/${team.id}/board`);
    await page.getByRole('button', { name: 'New task' }).click();
    await page.locator('#task-subject').fill('Half a task');
    await page.reload();
    await page.locator('.task-dialog').waitFor();
    assert.equal(await page.locator('#task-subject').inputValue(), 'Half a task');
    await page.keyboard.press('Escape');
    await page.locator('.task-dialog').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'New task' }).click();
    assert.equal(await page.locator('#task-subject').inputValue(), 'Half a task');
  },

  async 'a lost answer and a second press make one job'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    const team = await visitor.team('Once');
    await visitor.open(`#/team/${team.id}`);
    await page.locator('.member-button', { hasText: 'Ada' }).click();
    await page.locator('#composer-text').fill('Only once');
    // The request arrives, its answer does not, twice.
    let lost = 0;
    await page.route('**/actions/send', async (route) => {
      lost += 1;
      await route.fetch();
      if (lost <= 2) await route.abort();
      else await route.continue();
    });
    await page.locator('#composer-send').click();
    await page.getByText('Not everything was sent.').waitFor();
    assert.equal(await page.locator('#composer-text').inputValue(), 'Only once');
    await page.reload();
    await page.locator('#composer-send').dblclick();
    await visitor.until(async () => (await page.locator('#composer-text').inputValue()) === '', 'the draft is gone');
    assert.equal((await visitor.action('get', { team_id: team.id })).jobs.length, 1);
    assert.equal(await page.locator('.chain').count(), 1);
  },

  async 'what is typed while others work stays, and so do the caret and the reading position'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Busy');
    await visitor.open(`#/team/${team.id}`);
    await page.locator('#composer-text').focus();
    await page.keyboard.type('first second');
    await page.locator('#composer-text').evaluate((area) => area.setSelectionRange(5, 5));
    for (let i = 0; i < 6; i += 1) {
      const done = visitor.ask(team, 'Bo', `Update number ${i}`);
      await page.keyboard.type(String(i));
      await done;
    }
    await page.locator('.chain').nth(5).waitFor();
    assert.equal(await page.locator('#composer-text').inputValue(), 'first012345 second');
    // Reading further down does not jump when something new stands above.
    await page.setViewportSize({ width: 1440, height: 500 });
    const read = page.locator('.job', { hasText: 'Update number 1' });
    await read.evaluate((card) => card.scrollIntoView({ block: 'start' }));
    const before = await read.evaluate((card) => Math.round(card.getBoundingClientRect().top));
    await visitor.ask(team, 'Bo', 'One more above');
    await page.locator('.chain').nth(6).waitFor();
    const after = await read.evaluate((card) => Math.round(card.getBoundingClientRect().top));
    assert.ok(Math.abs(before - after) <= 2, `${before} → ${after}`);
  },

  async 'two tabs see the same; an unchanged read is small; without the stream the page asks'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Tabs');
    await visitor.open(`#/team/${team.id}`);
    const other = await visitor.context.newPage();
    await other.goto(page.url());
    await other.locator('.composer').waitFor();
    await visitor.ask(team, 'Ada', 'Seen in both');
    for (const tab of [page, other]) await tab.getByText('Done: it is finished.').waitFor();
    const { team: now } = await visitor.action('get', { team_id: team.id });
    const same = await visitor.action('get', { team_id: team.id, limit: 200, details: true, revision: now.revision });
    assert.deepEqual(same, { unchanged: true, revision: now.revision });
    await other.close();
    visitor.expectFailures = true;
    await page.route('**/api/events*', (route) => route.fulfill({ status: 429, contentType: 'application/problem+json', body: '{"code":"too_many_streams","detail":"Close one."}' }));
    await page.reload();
    await page.locator('.live.poll').waitFor();
    await visitor.ask(team, 'Ada', 'Seen by asking');
    await page.locator('.job', { hasText: 'Seen by asking' }).getByText('Done: it is finished.').waitFor();
  },

  async 'after a restart a team says that it is not connected, or goes on'({ come, server }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    const team = await visitor.team('Restarted');
    await visitor.ask(team, 'Bo', 'Please work slowly.', ['running']);
    await visitor.open(`#/team/${team.id}`);
    await server.stop('SIGKILL');
    await server.start();
    await page.locator('.live.stream').waitFor();
    await page.locator('.menu summary').click();
    await page.locator('.menu-list').getByRole('button', { name: 'Reconnect' }).click();
    await page.getByText('The team is connected; its work continues.').waitFor();
    await visitor.until(async () => (await visitor.action('get', { team_id: team.id })).team.connected, 'connected');
    const job = (await visitor.action('get', { team_id: team.id })).jobs[0];
    await visitor.action('cancel', { team_id: team.id, job_id: job.id });
    await page.locator('.job').getByText('Cancelled', { exact: true }).first().waitFor();
  },
};
